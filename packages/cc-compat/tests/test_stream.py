"""Queries with the real SDK, with an unknown message in the middle."""

from collections.abc import AsyncIterator, Callable
from typing import Any, TypeAlias

import anyio
import pytest
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage, Transport, query

Frame: TypeAlias = dict[str, Any]
Scripted: TypeAlias = Callable[..., Transport]

ASSISTANT: Frame = {"type": "assistant", "message": {"model": "m", "content": [{"type": "text", "text": "Sunny."}]}}
UNKNOWN: Frame = {"type": "weather_event", "sky": "blue"}
MALFORMED: Frame = {"type": "assistant", "message": {}}
RESULT: Frame = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "duration_ms": 1,
    "duration_api_ms": 1,
    "num_turns": 1,
    "session_id": "s1",
    "result": "Sunny.",
}


async def prompt() -> AsyncIterator[Frame]:
    yield {"type": "user", "message": {"role": "user", "content": "What is the weather?"}}


async def results_of(transport: Transport) -> list[str | None]:
    with anyio.fail_after(20):
        return [
            message.result
            async for message in query(prompt=prompt(), transport=transport)
            if isinstance(message, ResultMessage)
        ]


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name.startswith("cc_compat")]


async def test_an_unknown_message_in_the_middle_does_not_cost_the_result(
    transport: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    """SDK-US3-1, SDK-ADD-11"""
    assert await results_of(transport(ASSISTANT, UNKNOWN, RESULT)) == ["Sunny."]
    assert warnings_in(caplog) == [
        "Skipped a message of the unknown type 'weather_event': {'sky': 'blue', 'type': 'weather_event'}"
    ]


async def test_the_client_reads_on_too(transport: Scripted, caplog: pytest.LogCaptureFixture) -> None:
    """SDK-US3-1: the client imports the parser on each read, and gets the wrapper."""
    messages: list[object] = []
    async with ClaudeSDKClient(ClaudeAgentOptions(), transport(UNKNOWN, RESULT)) as client:
        with anyio.fail_after(20):
            await client.query("What is the weather?")
            messages += [message async for message in client.receive_response()]

    assert [message.result for message in messages if isinstance(message, ResultMessage)] == ["Sunny."]
    assert len(warnings_in(caplog)) == 1


async def test_a_malformed_message_still_ends_the_query(transport: Scripted) -> None:
    """SDK-US3-2"""
    with pytest.raises(Exception, match="Missing required field in assistant message") as caught:
        await results_of(transport(MALFORMED, RESULT))

    assert type(caught.value).__name__ == "MessageParseError"
