"""Record of the traffic with a CLI: signs of life, and side effects that a rewind to nothing does not undo.

All traffic passes through the transport, as text or as a message, whatever the cause. Silence is normal while a tool
runs, and while the CLI waits for our answer: to a hook, to a permission request, or from an MCP server in this process.

A rewind drops messages. It does not undo a permission granted for the session, a change of the Bash tool's folder, or a
slash command. Control requests not in `_HARMLESS` count as side effects, except those for settings that can be set
back.
"""

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from cc_types import JsonValue

from .settings import EXACT_MODES

__all__ = ["Observer", "SideEffects", "is_response"]

# Control requests that only read, or end or drop data that a rewind drops too.
_HARMLESS = frozenset((
    "get_context_usage", "get_hooks_listing", "get_session_cost", "get_settings", "get_usage", "initialize",
    "interrupt", "mcp_status", "rewind_conversation",
))  # fmt: skip

# Variables that the CLI reads again for each request, so the earlier value undoes a change.
_PER_REQUEST = frozenset({"CLAUDE_CODE_EXTRA_BODY", "CLAUDE_CODE_MAX_OUTPUT_TOKENS"})

# Prefixes of lines, which are not parsed: prompts can have megabytes.
_CONTROL_RESPONSE = '{"type": "control_response"'
_USER = '{"type": "user"'
_ASSISTANT = '{"type": "assistant"'

# Ends of a user message that the CLI takes literally, so that it runs no command.
_VERBATIM = ('"client_composed": true}', '"client_composed": true, "shouldQuery": false}')

# The id comes before the answer itself, which can take megabytes.
_RESPONSE_ID = re.compile(r'"request_id": "([^"\\]+)"')
_HEAD = 300


@dataclass(slots=True)
class SideEffects:
    """Side effects that a lease has on a process."""

    has_conversation: bool = False
    """True if there is a conversation."""
    answered: bool = False
    """True if the model began to answer."""
    called_tools: bool = False
    """True if the model has called a tool."""
    others: set[str] = field(default_factory=set[str])
    """Effects that cannot be undone."""

    def clear(self) -> None:
        """Record a complete undo."""
        self.has_conversation = self.answered = self.called_tools = False
        self.others.clear()


class Observer:
    """Observes the traffic with a process."""

    def __init__(self) -> None:
        self.side_effects = SideEffects()
        self._alive_at = time.monotonic()
        self._tools: set[str] = set()
        self._requests: set[str] = set()

    def silent_for(self) -> float:
        """Return the seconds since the last output; 0 while the CLI waits for a tool or an answer."""
        if self._tools or self._requests:
            return 0.0
        return time.monotonic() - self._alive_at

    def requested(self, request: Mapping[str, JsonValue]) -> None:
        """Record a control request."""
        match request:
            case {"subtype": "set_model"}:
                pass
            case {"subtype": "set_permission_mode", "mode": mode} if mode in EXACT_MODES:
                pass
            case {"subtype": "apply_flag_settings", "settings": {**settings}} if _can_be_set_back(settings):
                pass
            case {"subtype": str(subtype)} if subtype not in _HARMLESS:
                self.side_effects.others.add(subtype)
            case _:
                pass

    def sent(self, line: str) -> None:
        """Record a line that was written to the CLI."""
        self._alive_at = time.monotonic()  # the CLI now has work to do
        effects = self.side_effects
        if is_response(line):
            self._requests.discard(_response_id(line))
            # Inside a JSON string the quotes would be escaped, so this is a field.
            if '"updatedPermissions"' in line:
                effects.others.add("permissions")
        elif line.startswith((_USER, _ASSISTANT)):
            effects.has_conversation = True
            if line.startswith(_USER) and not line.rstrip().endswith(_VERBATIM):
                effects.others.add("commands")

    def received(self, message: Mapping[str, Any]) -> None:
        """Record a message from the CLI. The parser reports malformed messages."""
        self._alive_at = time.monotonic()
        self.side_effects.answered |= message.get("type") in ("assistant", "stream_event")
        match message:
            case {"type": "assistant", "message": {"content": [*blocks]}}:
                calls = _ids(blocks, "tool_use", "id")
                self._tools |= calls
                self.side_effects.called_tools |= bool(calls)
            case {"type": "user", "message": {"content": [*blocks]}}:
                self._tools -= _ids(blocks, "tool_result", "tool_use_id")
            case {"type": "control_request", "request_id": str(request_id)}:
                self._requests.add(request_id)
            case {"type": "control_cancel_request", "request_id": str(request_id)}:
                self._requests.discard(request_id)
            case {"type": "result"}:
                self._tools.clear()
            case _:
                pass


def is_response(line: str) -> bool:
    """Return true if a line written to the CLI answers a control request from it."""
    return line.startswith(_CONTROL_RESPONSE)


def _can_be_set_back(settings: Mapping[str, JsonValue]) -> bool:
    env = settings.get("env", {})
    return settings.keys() <= {"env", "model"} and isinstance(env, dict) and env.keys() <= _PER_REQUEST


def _ids(blocks: list[object], kind: str, name: str) -> set[str]:
    objects = [cast("Mapping[str, object]", block) for block in blocks if isinstance(block, Mapping)]
    return {str(block.get(name)) for block in objects if block.get("type") == kind}


def _response_id(line: str) -> str:
    if (match := _RESPONSE_ID.search(line, 0, _HEAD)) is not None:
        return match[1]
    return str(json.loads(line).get("response", {}).get("request_id"))
