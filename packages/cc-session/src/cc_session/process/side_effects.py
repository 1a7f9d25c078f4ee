"""What a process went through that going back to an empty conversation does not take back.

A rewind drops messages. It does not undo what a control request has set, a permission that was granted for the session,
a folder that the Bash tool has changed to, or what a slash command did. All of it passes through the transport, as text
or as a message, so it is noticed there, whoever caused it. What is not known to be harmless is not.
"""

import json
from collections.abc import Mapping
from typing import Any, cast

__all__ = ["Traces"]

# These only ask, or end or drop what the rewind drops as well.
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

# Read anew for each request, and put back by naming the value from before; null is none.
_PER_REQUEST = frozenset({"CLAUDE_CODE_EXTRA_BODY", "CLAUDE_CODE_MAX_OUTPUT_TOKENS"})

# How the lines begin that are looked into. Prompts can have megabytes.
_CONTROL_REQUEST = '{"type": "control_request"'
_CONTROL_RESPONSE = '{"type": "control_response"'
_USER = '{"type": "user"'
_ASSISTANT = '{"type": "assistant"'

# How a user message ends whose text is taken as it stands, and so runs no command.
_VERBATIM = ('"client_composed": true}', '"client_composed": true, "shouldQuery": false}')


class Traces:
    """What is to be put back, and whether there is more than can be. Kept by the transport of each session."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin anew: all was put back."""
        self.talked = False
        """Whether there is a conversation."""
        self.answered = False
        """Whether the model has begun to answer."""
        self.model = False
        """Whether another model was set."""
        self.mode: str | None = None
        """The permission mode that was set last, if one was."""
        self.env: set[str] = set()
        """The variables that were set and can be put back."""
        self.called_tools = False
        """Whether the model has called a tool."""
        self.others: set[str] = set()
        """What nobody knows how to put back."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was done at all."""
        return not (self.talked or self.model or self.mode or self.env or self.called_tools or self.others)

    def sent(self, line: str) -> None:
        """Take note of a line that was written to the CLI."""
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
        """Take note of a message of the CLI."""
        self.answered |= message.get("type") in ("assistant", "stream_event")
        if message.get("type") == "assistant" and not self.called_tools:
            content = message.get("message", {}).get("content")
            blocks = cast("list[Mapping[str, Any]]", content) if isinstance(content, list) else []
            self.called_tools = any(block.get("type") == "tool_use" for block in blocks)

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
