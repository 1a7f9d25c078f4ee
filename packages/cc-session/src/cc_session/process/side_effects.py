"""Side effects on a process that a rewind to an empty conversation does not undo.

A rewind drops messages. It does not undo a permission granted for the session, a change of the Bash tool's folder, or
effects of a slash command. All these pass, as text or as a message, through the transport, which records them, whatever
their cause. Control requests not in `_HARMLESS` count as side effects, except those of settings that can be set back.
"""

from collections.abc import Mapping
from typing import Any, cast

from cc_types import JsonValue

from .settings import EXACT_MODES

__all__ = ["SideEffects"]

# They only read, or end or drop data that a rewind drops too.
_HARMLESS = frozenset((
    "get_context_usage", "get_hooks_listing", "get_session_cost", "get_settings", "get_usage", "initialize",
    "interrupt", "mcp_status", "rewind_conversation",
))  # fmt: skip

# The CLI reads these again for each request, so the earlier value undoes a change.
_PER_REQUEST = frozenset({"CLAUDE_CODE_EXTRA_BODY", "CLAUDE_CODE_MAX_OUTPUT_TOKENS"})

# Prefixes of lines. Prompts can have megabytes, so they are not parsed.
_CONTROL_RESPONSE = '{"type": "control_response"'
_USER = '{"type": "user"'
_ASSISTANT = '{"type": "assistant"'

# Ends of a user message whose text is taken literally, and so runs no command.
_VERBATIM = ('"client_composed": true}', '"client_composed": true, "shouldQuery": false}')


class SideEffects:
    """Side effects of a lease. Kept by the transport of each session."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Reset after a complete undo."""
        self.talked = False
        """True if there is a conversation."""
        self.answered = False
        """True if the model began to answer."""
        self.called_tools = False
        """True if the model has called a tool."""
        self.others: set[str] = set()
        """Effects that cannot be undone."""

    @property
    def is_empty(self) -> bool:
        """True if there are no effects."""
        return not (self.talked or self.called_tools or self.others)

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
                self.others.add(subtype)
            case _:
                pass

    def sent(self, line: str) -> None:
        """Record another line that was written to the CLI."""
        if line.startswith(_CONTROL_RESPONSE):
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


def _can_be_set_back(settings: Mapping[str, JsonValue]) -> bool:
    env = settings.get("env", {})
    return settings.keys() <= {"env", "model"} and isinstance(env, dict) and env.keys() <= _PER_REQUEST


def _is_call(block: object) -> bool:
    return isinstance(block, Mapping) and cast("Mapping[str, object]", block).get("type") == "tool_use"
