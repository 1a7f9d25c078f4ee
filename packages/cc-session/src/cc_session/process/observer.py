"""The traffic with a process, observed: signs of life, and the side effects of a lease.

A rewind drops messages. It does not undo a permission granted for the session, a change of the Bash tool folder, or a
slash command. Control requests not in `_HARMLESS` count as side effects, except those for settings that can be set
back.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from cc_types import JsonValue

# Control requests that only read, or end or drop data that a rewind drops too.
_HARMLESS = frozenset((
    "get_context_usage", "get_hooks_listing", "get_session_cost", "get_settings", "get_usage", "initialize",
    "interrupt", "mcp_status", "rewind_conversation",
))  # fmt: skip

# Prefixes of lines, which are not parsed: prompts can have megabytes.
_CONTROL_RESPONSE, _USER, _ASSISTANT = '{"type": "control_response"', '{"type": "user"', '{"type": "assistant"'

# Ends of a user message that the CLI takes literally, so that it runs no command.
_VERBATIM = ('"client_composed": true}', '"client_composed": true, "shouldQuery": false}')


@dataclass(slots=True)
class SideEffects:
    """Side effects that a lease has on a process."""

    has_conversation: bool = False
    answered: bool = False
    """True if the model began to answer."""
    called_tools: set[str] = field(default_factory=set[str])
    """Names of the tools that the model called."""
    others: set[str] = field(default_factory=set[str])
    """Effects that cannot be undone."""

    def clear(self) -> None:
        """Record a complete undo."""
        self.has_conversation = self.answered = False
        self.called_tools.clear()
        self.others.clear()


class Observer:
    """Observes the traffic with a process."""

    def __init__(self) -> None:
        self.side_effects = SideEffects()
        self.login_expires_at: str | None = None
        """End of the login, as in the last result. The SDK parser drops it."""
        self._alive_at = self._waited_at = self.heard_at = time.monotonic()
        """The last: time of the last output."""
        self._tools: set[str] = set()
        self._requests: set[str] = set()

    def silent_for(self) -> float:
        """Return the seconds since the last output; 0 while the CLI waits for a tool, a hook, a permission or us."""
        return 0.0 if self.is_waiting else time.monotonic() - self._alive_at

    def waited_at(self) -> float:
        """Return the time when the CLI last waited for a tool, a hook, a permission or us; now while it does so."""
        return time.monotonic() if self.is_waiting else self._waited_at

    @property
    def is_waiting(self) -> bool:
        """True while the CLI waits for a tool, a hook, a permission or us."""
        return bool(self._tools or self._requests)

    def requested(self, request: Mapping[str, JsonValue], *, can_be_undone: bool) -> None:
        """Record a control request."""
        if request["subtype"] not in _HARMLESS and not can_be_undone:
            self.side_effects.others.add(str(request["subtype"]))

    def sent(self, line: str) -> None:
        """Record a line that was written to the CLI."""
        self._waited_at = self.waited_at()
        self._alive_at = time.monotonic()  # the CLI now has work to do
        # Inside a JSON string the quotes would be escaped, so these are fields.
        if line.startswith(_CONTROL_RESPONSE):
            self._requests -= {request for request in self._requests if f'"request_id": "{request}"' in line}
            if '"updatedPermissions"' in line:
                self.side_effects.others.add("permissions")
        elif line.startswith((_USER, _ASSISTANT)):
            self.side_effects.has_conversation = True
            if line.startswith(_USER) and not line.rstrip().endswith(_VERBATIM):
                self.side_effects.others.add("commands")

    def received(self, message: Mapping[str, Any]) -> None:
        """Record a message from the CLI. The parser reports malformed messages."""
        self._waited_at = self.waited_at()
        self._alive_at = self.heard_at = time.monotonic()
        self.side_effects.answered |= message.get("type") in ("assistant", "stream_event")
        match message:
            case {"type": "assistant", "message": {"content": [*blocks]}}:
                self._tools |= _texts(blocks, "tool_use", "id")
                self.side_effects.called_tools |= _texts(blocks, "tool_use", "name")
            case {"type": "user", "message": {"content": [*blocks]}}:
                self._tools -= _texts(blocks, "tool_result", "tool_use_id")
            case {"type": "control_request", "request_id": str(request_id)}:
                self._requests.add(request_id)
            case {"type": "control_cancel_request", "request_id": str(request_id)}:
                self._requests.discard(request_id)
            case {"type": "system", "subtype": "init"}:
                self.side_effects.has_conversation = True  # also in a turn by the CLI itself
            case {"type": "result"}:
                self._tools.clear()
                self.login_expires_at = message.get("credential_expires_at")
            case _:
                pass


def _texts(blocks: list[object], kind: str, name: str) -> set[str]:
    objects = [cast("Mapping[str, object]", block) for block in blocks if isinstance(block, Mapping)]
    return {str(block.get(name)) for block in objects if block.get("type") == kind}
