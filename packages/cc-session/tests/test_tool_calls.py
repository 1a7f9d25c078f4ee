"""Tool calls that wait for their caller, in the CLI's own loop."""

import asyncio
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from claude_agent_sdk import ClaudeAgentOptions, Message, ResultMessage, StreamEvent
from mcp.server.mcpserver import MCPServer

from cc_loopback import JsonObject, LoopbackServer, Reply
from cc_session import Session, Timeouts, ToolCall, ToolDefinition, UnknownToolCallError
from cc_types import CLIConnectionError, JsonValue, ProcessExitedError

from .conftest import all_raise, ask, calling, process_of, sealed, until, use

if sys.platform == "win32":
    raise pytest.skip.Exception("needs POSIX", allow_module_level=True)

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
CITY: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "Where."}},
    "required": ["city"],
}
# Names of Claude Code's own tools that MCP servers usually do not use.
TOOLS = [
    ToolDefinition("get_weather", "The weather in a city.", CITY),
    ToolDefinition("Bash", "Not a shell.", {"type": "object", "properties": {}}),
    ToolDefinition("a" * 64, "", {"type": "object"}),
]


def results(server: LoopbackServer) -> list[dict[str, Any]]:
    """The tool results of the last request by their ids, for the CLI's order is that of its own ends of calls."""
    content = server.requests[-1]["messages"][-1]["content"]
    unmarked = [{key: value for key, value in block.items() if key != "cache_control"} for block in content]
    return sorted(unmarked, key=lambda block: block["tool_use_id"])


def outcome(messages: list[Message]) -> ResultMessage:
    assert isinstance(messages[-1], ResultMessage)
    return messages[-1]


@pytest.fixture
async def own_session(options: ClaudeAgentOptions) -> AsyncIterator[Session]:
    """A session with tools in a process that ends with its test, within a time that no test would wait for."""
    async with await Session.open(options, tools=TOOLS, timeouts=Timeouts(close=30)) as session:
        yield session


@pytest.fixture(scope="module")
async def process(worker_api: LoopbackServer) -> AsyncIterator[Session]:
    async with await Session.open(sealed(worker_api), tools=TOOLS) as session:
        yield session


@pytest.fixture
async def session(process: Session, server: LoopbackServer) -> Session:
    """A session with tools and an empty conversation, in a process that the tests of this module share."""
    await process.reset()
    return process


async def test_the_api_gets_the_tools_as_they_were_given(server: LoopbackServer, session: Session) -> None:
    """SES-16: not under the names of an MCP server, and beside no others."""
    server.respond = calling()

    await ask(session, "Hello.")

    tools = {tool["name"]: tool for tool in server.requests[-1]["tools"]}
    assert {*tools} == {tool.name for tool in TOOLS}
    assert tools["get_weather"]["description"] == "The weather in a city."
    assert tools["get_weather"]["input_schema"]["properties"] == CITY["properties"]
    assert tools["get_weather"]["input_schema"]["required"] == ["city"]


async def test_a_call_waits_for_its_answer_and_the_cli_goes_on_with_it(
    server: LoopbackServer, session: Session
) -> None:
    """SES-16."""
    server.respond = calling(use(1, "get_weather", city="Paris"))
    asking = ask(session, "Weather?")

    call = await session.next_call()

    assert call == ToolCall("toolu_1", "get_weather", {"city": "Paris"})
    assert session.suspended == (call,)
    assert session.state == "busy"
    await session.answer_call(call.id, "Sunny.")
    assert session.suspended == ()
    assert outcome(await asking).result == "Done."
    assert results(server) == [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "Sunny."}]}
    ]
    assert len(server.requests) == 2


async def test_all_calls_of_a_message_wait_at_once_and_are_answered_in_any_order(
    server: LoopbackServer, session: Session
) -> None:
    """SES-16, SES-60: and when the message stops; the CLI chooses the order of the results in the next request."""
    numbers = range(1, 9)
    server.respond = calling(*(use(number, "get_weather", city=f"City {number}") for number in numbers))
    stream = session.ask("Weather?")
    async for message in stream:
        if isinstance(message, StreamEvent) and message.event["type"] == "message_stop":
            break

    with anyio.fail_after(5):
        calls = [await session.next_call() for _ in numbers]
    assert {call.id for call in calls} == {f"toolu_{number}" for number in numbers}
    assert sorted(session.suspended, key=lambda call: call.id) == sorted(calls, key=lambda call: call.id)
    for call in reversed(calls):
        await session.answer_call(call.id, f"It is {call.arguments['city']}.")

    assert outcome([message async for message in stream]).result == "Done."
    assert {result["tool_use_id"]: result["content"][0]["text"] for result in results(server)} == {
        call.id: f"It is {call.arguments['city']}." for call in calls
    }


async def test_content_of_all_kinds_reaches_the_model_whole(server: LoopbackServer, session: Session) -> None:
    server.respond = calling(*(use(number, "Bash") for number in range(1, 7)))
    asking = ask(session, "Look.")
    for _ in range(6):
        await session.next_call()

    await session.answer_call("toolu_1", "It broke.", is_error=True)
    await session.answer_call(
        "toolu_2",
        [{"type": "text", "text": "A pixel:"}, {"type": "image", "data": PIXEL, "mimeType": "image/png"}],
    )
    await session.answer_call("toolu_3", "")
    for number in (4, 5, 6):
        await session.answer_call(f"toolu_{number}", "w" * 500_000)

    await asking
    error, picture, empty, *long = results(server)
    assert [result["content"][0]["text"] for result in long] == ["w" * 500_000] * 3
    assert (error["is_error"], error["content"]) == (True, "It broke.")
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    assert picture["content"] == [{"type": "text", "text": "A pixel:"}, {"type": "image", "source": source}]
    assert not empty.get("is_error")


UNFIT: list[tuple[Any, str]] = [
    ("w" * 500_001, "500000 characters.*has 500001"),
    ([{"type": "text", "text": "\N{GRINNING FACE}" * 150_000}] * 2, "has 600000"),
    ([{"type": "resource_link", "uri": "file:///x", "name": "x"}], "as they are, not resource_link"),
    ([{"type": "hologram"}], "hologram"),
    ([{"type": "image"}], "mimeType"),
]


async def test_an_answer_that_cannot_be_carried_is_refused_and_the_call_still_waits(
    server: LoopbackServer, session: Session
) -> None:
    """The CLI would give the model the name of a file, or a description."""
    server.respond = calling(use(1, "Bash"))
    asking = ask(session, "Go.")
    call = await session.next_call()

    for content, reason in UNFIT:
        with pytest.raises(ValueError, match=reason):
            await session.answer_call(call.id, content)

    assert session.suspended == (call,)
    await session.answer_call(call.id, "Plain.")
    assert outcome(await asking).result == "Done."


@pytest.mark.parametrize("by", ["an interrupt", "an interrupt after they were told", "a rewind"])
async def test_calls_are_cancelled_by(server: LoopbackServer, session: Session, by: str) -> None:
    """SES-18, whether or not `next_call()` has returned them."""
    server.respond = calling(use(1, "Bash"), use(2, "Bash"))
    asking = ask(session, "Go.")
    with anyio.fail_after(10):
        await until(lambda: len(session.suspended) == 2, pause=0.001)
        if "told" in by:
            await session.next_call()
        if by != "a rewind":
            await session.interrupt()
            assert session.suspended == ()
            assert outcome(await asking).terminal_reason == "aborted_tools"
            with pytest.raises(UnknownToolCallError):
                await session.answer_call("toolu_1", "Too late.")
        assert await session.rewind(session.last_user_uuid or "")
        assert session.suspended == ()
        await asking
    await _answers_next_call(server, session)
    assert server.requests[-1]["messages"][0]["content"] == "Once more."


async def test_close_cancels_the_calls_at_once(server: LoopbackServer, own_session: Session) -> None:
    """SES-F20."""
    server.respond = calling(use(1, "Bash"), use(2, "Bash"))
    asking = ask(own_session, "Go.")
    waiting = [asyncio.ensure_future(own_session.next_call()) for _ in range(3)]
    await asyncio.wait(waiting[:2], timeout=5)

    with anyio.fail_after(10):
        await own_session.close()

    assert own_session.suspended == ()
    await all_raise(CLIConnectionError, asking, waiting[2], match="The session is closed")


async def test_the_death_of_the_process_reaches_who_waits_for_a_call(
    server: LoopbackServer, own_session: Session
) -> None:
    """SES-20."""
    server.respond = calling(use(1, "Bash"))
    asking = ask(own_session, "Go.")
    call = await own_session.next_call()
    waiting = asyncio.ensure_future(own_session.next_call())

    process_of(own_session).kill()

    with anyio.fail_after(5):
        await all_raise(ProcessExitedError, waiting, asking, own_session.next_call())
    assert own_session.suspended == ()
    with pytest.raises(UnknownToolCallError):
        await own_session.answer_call(call.id, "Too late.")


async def test_waiting_for_a_call_can_be_cancelled_and_loses_none(server: LoopbackServer, session: Session) -> None:
    waiting = asyncio.ensure_future(session.next_call())
    await asyncio.sleep(0)
    waiting.cancel()

    await _answers_next_call(server, session)


async def test_tools_stand_beside_the_caller_s_own_options(server: LoopbackServer, options: ClaudeAgentOptions) -> None:
    """A limit of turns stays, but for the sealed one; so do other tools."""
    options = replace(options, max_turns=2, tools=["Read"], allowed_tools=["Read"])

    def respond(body: JsonObject) -> Reply:
        return [use(len(body["messages"]), "get_weather", city="Paris")]

    server.respond = respond
    async with await Session.open(options, tools=TOOLS[:1]) as session:
        asking = ask(session, "Go.")
        for _ in range(2):
            await session.answer_call((await session.next_call()).id, "Go on.")
        assert outcome(await asking).subtype == "error_max_turns"

    names = {tool["name"] for tool in server.requests[0]["tools"]}
    assert names == {"Read", "get_weather"}


async def test_a_server_with_the_name_of_that_of_the_tools_is_refused_only_beside_tools(
    options: ClaudeAgentOptions,
) -> None:
    """SES-55."""
    servers: Any = {"session": {"type": "http", "url": "http://host"}}
    with pytest.raises(ValueError, match="already an MCP server 'session'"):
        await Session.open(replace(options, mcp_servers=servers), tools=TOOLS)
    async with await Session.open(options, mcp_servers={"session": MCPServer("x")}) as session:
        assert [server["name"] for server in await session.mcp_status()] == ["session"]


async def test_tools_cannot_be_added_to_a_file_of_servers(options: ClaudeAgentOptions, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"servers\.json: give the servers as a dict"):
        await Session.open(replace(options, mcp_servers=tmp_path / "servers.json"), tools=TOOLS)


async def _answers_next_call(server: LoopbackServer, session: Session) -> None:
    """The session is fully usable."""
    server.respond = calling(use(99, "Bash"))
    asking = ask(session, "Once more.")
    with anyio.fail_after(5):
        call = await session.next_call()
    assert session.suspended == (call,)
    await session.answer_call(call.id, "Answer.")
    assert outcome(await asking).result == "Done."
