"""The CLI itself on the loopback API, with each supported login."""

from dataclasses import replace
from typing import Any

import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    Message,
    ResultMessage,
    StreamEvent,
    create_sdk_mcp_server,
    tool,
)

from cc_loopback import Login, LoopbackServer
from cc_session import sealed_options

pytestmark = pytest.mark.slow

VERTEX = "/v1/projects/loopback/locations/us-east5/publishers/anthropic/models"
ON_BEDROCK = "us.anthropic.claude-sonnet-5"


@tool("lucky_number", "A number.", {})
async def lucky_number(_arguments: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": "7"}]}


def options(api: LoopbackServer, login: Login) -> ClaudeAgentOptions:
    return replace(
        sealed_options(model="claude-sonnet-5", env=api.env(login)),
        mcp_servers={"here": create_sdk_mcp_server("here", tools=[lucky_number])},
        allowed_tools=["mcp__here__lucky_number"],
        max_turns=None,
    )


async def ask(client: ClaudeSDKClient) -> tuple[list[Message], ResultMessage]:
    await client.query("Hello.")
    *messages, result = [message async for message in client.receive_response()]
    assert isinstance(result, ResultMessage)
    return messages, result


@pytest.mark.parametrize(
    ("login", "path", "model"),
    [
        ("api-key", "/v1/messages", "claude-sonnet-5"),
        ("oauth", "/v1/messages", "claude-sonnet-5"),
        ("vertex", f"{VERTEX}/claude-sonnet-5:streamRawPredict", "claude-sonnet-5"),
        ("bedrock", f"/model/{ON_BEDROCK}/invoke-with-response-stream", ON_BEDROCK),
    ],
    ids=["api-key", "oauth", "vertex", "bedrock"],
)
async def test_the_cli_streams_calls_a_tool_and_sees_errors_with_each_login(
    loopback: LoopbackServer, login: Login, path: str, model: str
) -> None:
    """LOOP-09, LOOP-18, LOOP-19, LOOP-34, LOOP-43, LOOP-17"""
    async with ClaudeSDKClient(options(loopback, login)) as client:
        messages, result = await ask(client)
        assert result.result == 'You said: "Hello.".\nmcp__here__lucky_number returned: 7'
        events = [message.event["type"] for message in messages if isinstance(message, StreamEvent)]
        assert events.count("message_start") == events.count("message_stop") == 2
        assert events.count("content_block_delta") > 4
        assert {call.path for call in loopback.calls if call.method == "POST"} == {path}
        assert [body["model"] for body in loopback.requests] == [model] * 2

        # In bare mode the CLI retries a cloud provider's 400.
        statuses = [429, 529] if login in ("vertex", "bedrock") else [429, 529, 400]
        for status in statuses:
            loopback.fail_next(status, message="Not now.")
            _, result = await ask(client)
            assert (result.is_error, result.api_error_status) == (True, status)
            assert "Not now." in str(result.result)

        loopback.fail_next(529, after_events=3, message="Not now.")
        messages, result = await ask(client)
        assert (result.is_error, result.result) == (True, "API Error: Not now.")
        assert any(isinstance(message, StreamEvent) for message in messages)
        # Data sent before a connection breaks may be lost with it.
        loopback.fail_next(after_events=3)
        _, result = await ask(client)
        assert "Connection to the API was lost" in str(result.result)
        assert len(loopback.requests) == 2 + len(statuses) + 1 + 1
