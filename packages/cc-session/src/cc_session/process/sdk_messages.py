"""The CLI's messages as the SDK can read them.

The SDK knows neither the questions to the user, nor the events that a fallback of the model lacks, nor the end of a
login in a result.
"""

from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from typing import Any, cast

from claude_agent_sdk import ClaudeSDKClient, Message, ResultMessage

from ..errors import MessageParseError
from .observer import Observer

# Sent for every queued message, for every half minute of a tool, and by features that the caller may turn on. The SDK
# does not know these types: it would pass on none, and cc-compat would warn each time, with a part of the message.
_NOT_FOR_THE_SDK = frozenset({
    "auth_status", "command_lifecycle", "prompt_suggestion", "tool_progress", "tool_use_summary",
})  # fmt: skip

# Control requests for the user's answer. The SDK knows none, so it gets them as calls of a hook with this id: it awaits
# the answer, and cancels the call when the CLI does.
_QUESTIONS = frozenset({"elicitation", "request_user_dialog"})
QUESTIONS = "cc_questions"


@dataclass
class LoginResult(ResultMessage):
    """A result of a login with `/login`, with the field that the SDK parser drops."""

    credential_expires_at: str | None = None
    """Time when the login ends, in ISO 8601."""


async def parsed_messages(client: ClaudeSDKClient, observer: Observer) -> AsyncGenerator[Message]:
    """Yield the messages that the SDK parser makes, as long as the output lasts; raise if one cannot be parsed."""
    try:
        async for message in client.receive_messages():
            end = observer.login_expires_at
            if isinstance(message, ResultMessage) and end is not None:
                message = LoginResult(**vars(message))
                message.credential_expires_at = end
            yield message
    except (AttributeError, TypeError) as error:
        # The SDK parser reports missing fields, but not wrong types.
        raise MessageParseError(reason=f"A field has another type than expected: {error}") from error


class SDKMessages:
    """The messages of a process, each as none, one or several that the SDK can read."""

    def __init__(self) -> None:
        self._blocks = 0

    def read(self, message: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the messages for the SDK."""
        yield from self._unreported_events(message)
        match message:
            case {"type": kind} if kind in _NOT_FOR_THE_SDK:
                pass
            case {"type": "control_request", "request": {"subtype": kind} as request} if kind in _QUESTIONS:
                call = {"subtype": "hook_callback", "callback_id": QUESTIONS, "input": request}
                yield {**message, "request": call}
            case _:
                yield message

    def _unreported_events(self, message: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the stream events for a `fallback` block. The CLI reports only the block, without its trigger."""
        match message:
            case {"parent_tool_use_id": str()}:
                pass  # a sub-agent's
            case {"type": "stream_event", "event": {"type": "message_start"}}:
                self._blocks = 0
            case {"type": "stream_event", "event": {"type": "content_block_start"}}:
                self._blocks += 1
            case {"type": "assistant", "message": {"content": [{"type": "fallback"} as hop]}}:
                place, self._blocks = {"index": self._blocks}, self._blocks + 1
                block = {"trigger": {"type": "refusal"}, **cast("dict[str, Any]", hop)}
                start = {"type": "content_block_start", **place, "content_block": block}
                for event in (start, {"type": "content_block_stop", **place}):
                    yield {**message, "type": "stream_event", "event": event}
            case _:
                pass
