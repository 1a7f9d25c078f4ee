"""Side effects on a process that a rewind to an empty conversation does not undo.

A rewind drops messages. It does not undo settings of a control request, a permission granted for the session, a change
of the Bash tool's folder, or effects of a slash command. All these pass, as text or as a message, through the
transport, which records them, whatever their cause. Control requests not in `_HARMLESS` count as side effects.
"""

import json
from collections.abc import Mapping
from typing import Any, cast

__all__ = ["SideEffects"]

# They only read, or end or drop data that a rewind drops too.
_HARMLESS = frozenset(
    {
        "get_context_usage",
        "get_hooks_listing",
        "get_session_cost",
        "get_settings",
        "get_usage",
        "initialize",
        "interrupt",
        "mcp_status",
        "rewind_conversation",
    }
)

# Read again for each request, and restored by sending the earlier value; null is none.
_PER_REQUEST = frozenset({"CLAUDE_CODE_EXTRA_BODY", "CLAUDE_CODE_MAX_OUTPUT_TOKENS"})

# Prefixes of the lines that are parsed. Prompts can have megabytes.
_CONTROL_REQUEST = '{"type": "control_request"'
_CONTROL_RESPONSE = '{"type": "control_response"'
_USER = '{"type": "user"'
_ASSISTANT = '{"type": "assistant"'

# Ends of a user message whose text is taken literally, and so runs no command.
_VERBATIM = ('"client_composed": true}', '"client_composed": true, "shouldQuery": false}')


class SideEffects:
    """Side effects to undo, and those that cannot be undone. Kept by the transport of each session."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Reset after a complete undo."""
        self.talked = False
        """True if there is a conversation."""
        self.answered = False
        """True if the model began to answer."""
        self.model = False
        """True if another model was set."""
        self.mode: str | None = None
        """Last permission mode that was set, if any."""
        self.env: set[str] = set()
        """Variables that were set and can be restored."""
        self.called_tools = False
        """True if the model has called a tool."""
        self.others: set[str] = set()
        """Effects that cannot be undone."""

    @property
    def is_empty(self) -> bool:
        """True if there are no effects."""
        return not (self.talked or self.model or self.mode or self.env or self.called_tools or self.others)

    def sent(self, line: str) -> None:
        """Record a line that was written to the CLI."""
        if line.startswith(_CONTROL_REQUEST):
            self._requested(json.loads(line)["request"])
        elif line.startswith(_CONTROL_RESPONSE):
            # In a string of JSON the quotes would be escaped, so this is a field.
            if '"updatedPermissions"' in line:
                self.others.add("permissions")
        elif line.startswith((_USER, _ASSISTANT)):
            self.talked = True
            if line.startswith(_USER) and not line.rstrip().endswith(_VERBATIM):
                self.others.add("commands")

    def received(self, message: Mapping[str, Any]) -> None:
        """Record a message from the CLI."""
        self.answered |= message.get("type") in ("assistant", "stream_event")
        match message:
            case {"type": "assistant", "message": {"content": [*blocks]}}:
                self.called_tools |= any(map(_is_call, blocks))
            case _:
                pass  # without a message the parser reports it

    def _requested(self, request: Mapping[str, Any]) -> None:
        match request:
            case {"subtype": "set_model"}:
                self.model = True
            case {"subtype": "set_permission_mode", "mode": str(mode)}:
                self.mode = mode
            case {"subtype": "apply_flag_settings", "settings": {"env": {**names}, **others}} if (
                not others and names.keys() <= _PER_REQUEST
            ):
                self.env |= names.keys()
            case {"subtype": str(subtype)} if subtype not in _HARMLESS:
                self.others.add(subtype)
            case _:
                pass


def _is_call(block: object) -> bool:
    return isinstance(block, Mapping) and cast("Mapping[str, object]", block).get("type") == "tool_use"
