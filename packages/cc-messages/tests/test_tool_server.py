"""The server for a caller's tools, without a CLI: each call belongs to a turn."""

import asyncio
import gc
import json
from collections.abc import Awaitable
from typing import cast

import pytest
from claude_agent_sdk import AssistantMessage, StreamEvent, ToolUseBlock
from mcp.types import CallToolResult

from cc_messages import CLICall
from cc_messages.context import RequestContext, ToolServerKey
from cc_messages.loop import calls
from cc_messages.loop.calls import ToolServer, TurnCalls


def call_tool(server: ToolServer, call_id: str | None) -> Awaitable[CallToolResult]:
    """Make a call as the CLI does, at any time."""
    return cast("Awaitable[CallToolResult]", vars(ToolServer)["_answer"](server, "add", {}, call_id))


def call_message(call_id: str) -> AssistantMessage:
    return AssistantMessage(content=[ToolUseBlock(id=call_id, name="add", input={})], model="m")


SERVER = ToolServerKey(
    "tools", "sdk", json.dumps([{"name": "add", "description": "", "input_schema": {}, "sequential": False}])
)


async def test_an_interrupt_in_the_callers_loop_is_an_error_of_the_tool() -> None:
    """IPC-P-21"""

    async def interrupted(_call: CLICall) -> dict[str, object]:
        raise KeyboardInterrupt

    server = ToolServer(SERVER)
    server.bind(TurnCalls(), interrupted)
    assert (await call_tool(server, None)).is_error  # and the background loop still runs


async def test_a_call_of_an_earlier_turn_is_refused_in_a_later_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """MSG-111: a call can come late, and may come before the message."""
    monkeypatch.setattr(calls, "_BEHIND_SECONDS", 0.05)
    ran: list[str | None] = []

    async def run(call: CLICall) -> dict[str, object]:
        ran.append(call.id)
        return {"content": [{"type": "text", "text": "ok"}], "isError": False}

    server = ToolServer(SERVER)
    for turn in ("first", "second"):
        turn_messages = TurnCalls()
        server.bind(turn_messages, run)
        answer = asyncio.ensure_future(call_tool(server, turn))
        await asyncio.sleep(0)
        turn_messages.note(call_message(turn))
        assert not (await answer).is_error
    refused = await call_tool(server, "first")
    assert refused.is_error
    assert "has ended" in str(refused.content)
    assert ran == ["first", "second"]


async def test_a_call_runs_when_its_message_has_ended_and_its_step_is_accepted() -> None:
    """MSG-143: the CLI makes it earlier."""
    steps: list[int] = []

    async def run(call: CLICall) -> dict[str, object]:
        steps.append(call.step)
        return {"content": [{"type": "text", "text": "ok"}], "isError": False}

    server, turn_messages = ToolServer(SERVER), TurnCalls()
    server.bind(turn_messages, run)
    for step in (1, 2):
        turn_messages.note(StreamEvent(uuid="", session_id="", event={"type": "message_start"}))
        turn_messages.note(call_message(f"toolu_{step}"))
        answer = asyncio.ensure_future(call_tool(server, f"toolu_{step}"))
        await asyncio.sleep(0.01)
        assert steps == [*range(1, step)]
        turn_messages.allow()
        await answer
    assert steps == [1, 2]


async def test_a_tool_whose_event_loop_has_ended_is_refused_and_not_begun(recwarn: pytest.WarningsRecorder) -> None:
    ran: list[int] = []

    async def context() -> RequestContext:
        return RequestContext(None, None, None)

    async def work() -> None:
        ran.append(1)

    request = await asyncio.to_thread(asyncio.run, context())

    with pytest.raises(RuntimeError, match="event loop in which the request was made has ended"):
        await request.there(work())
    gc.collect()
    # A coroutine that is neither awaited nor closed would be in a warning.
    assert (ran, recwarn.list) == ([], [])
