"""Tools that the real CLI calls by itself, over either transport. Over 400 lines: one table of calls serves all."""

import asyncio
import contextvars
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, cast

import anyio
import pytest
from claude_agent_sdk import Message

from cc_messages import CLICall, CLITools, request_context
from warm_clients.api_data import PNG, THINKING, plain
from warm_clients.client import Client, Response
from warm_clients.fixtures import Connect

NUMBERS = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}

Transport = Literal["sdk", "stdio"]
Handler = Callable[[CLICall], Awaitable[Mapping[str, object]]]


@pytest.fixture(params=["sdk", pytest.param("stdio", marks=pytest.mark.slow)])
def transport(request: pytest.FixtureRequest) -> Transport:
    return request.param


def tool(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "description": f"The tool {name}.", "input_schema": NUMBERS, **fields}


def text(value: object) -> dict[str, object]:
    return {"content": [{"type": "text", "text": str(value)}], "isError": False}


async def add(call: CLICall) -> dict[str, object]:
    return text(cast("int", call.arguments["a"]) + cast("int", call.arguments["b"]))


def tools(call: Handler, transport: Transport, *names: str, **fields: Any) -> CLITools:
    return CLITools(names=frozenset(names), call=call, transport=transport, **fields)


def calls(*names: str, **arguments: Any) -> list[dict[str, Any]]:
    """Return a model answer that calls tools, by the CLI's names."""
    arguments = arguments or {"a": 2, "b": 3}
    return [{"type": "tool_use", "name": f"mcp__tools__{name}", "input": arguments} for name in names]


def says(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


async def ask(client: Client, call: Handler, transport: Transport, *messages: Any) -> Response:
    """Return the answer to a request whose tool `add` the CLI calls."""
    with request_context(tools=tools(call, transport, "add")):
        return await client.ask("Add.", *messages, tools=[tool("add")])


def kinds(answered: Response) -> list[str]:
    return [block["type"] for block in answered.body["content"]]


def results(answered: Response) -> list[tuple[Any, bool]]:
    blocks = [block for block in answered.body["content"] if block["type"] == "mcp_tool_result"]
    return [(block["content"], block["is_error"]) for block in blocks]


async def test_a_loop_is_told_as_one_answer(several: Client, transport: Transport) -> None:
    """IPC-P-50, MSG-61: usage is the sum, and each API call an iteration."""
    contents = [says("Let me see."), *calls("add")], [says("Again."), *calls("add", a=5, b=6)], [says("Done.")]
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens")
    usages = [dict(zip(names, counts, strict=True)) for counts in ((10, 5, 3), (20, 7, 4), (40, 9, 5))]
    several.script(*({"content": content, "usage": usage} for content, usage in zip(contents, usages, strict=True)))
    answered = await ask(several, add, transport)
    assert answered.status == 200
    content = answered.body["content"]
    assert kinds(answered) == ["text", "mcp_tool_use", "mcp_tool_result"] * 2 + ["text"]
    assert (content[1]["server_name"], content[1]["name"], content[1]["input"]) == ("tools", "add", {"a": 2, "b": 3})
    assert content[2]["tool_use_id"] == content[1]["id"]
    assert results(answered) == [([{"type": "text", "text": "5"}], False), ([{"type": "text", "text": "11"}], False)]
    assert answered.stop_reason == "end_turn"
    assert len(several.api.requests) == 3
    usage = answered.body["usage"]
    assert [usage[name] for name in names] == [70, 21, 12]
    assert [iteration["input_tokens"] for iteration in usage["iterations"]] == [10, 20, 40]


async def test_claude_code_s_note_after_an_answer_of_thinking_reaches_no_other_request(
    several: Client, transport: Transport
) -> None:
    """MSG-21: the CLI may begin an API call with a note of its own, whose answer nobody reads."""
    several.answers(lambda body: "Unread." if "no visible output" in str(body) else [THINKING])
    answered = await ask(several, add, transport)
    assert (kinds(answered), answered.stop_reason) == (["thinking"], "end_turn")
    several.answers(lambda body: "Done.")
    assert (await ask(several, add, transport)).text == "Done."
    assert plain(several.api.requests[-1]["messages"]) == [{"role": "user", "content": [says("Add.")]}]


async def test_a_stream_tells_of_calls_and_results_as_they_come(several: Client, transport: Transport) -> None:
    """MSG-61"""
    may_answer = asyncio.Event()

    async def patient(call: CLICall) -> dict[str, object]:
        await may_answer.wait()
        return await add(call)

    several.script([says("Let me see."), *calls("add")], "Done.")
    with request_context(tools=tools(patient, transport, "add")):
        async with several.stream("Add.", tools=[tool("add")]) as response:
            lines = response.aiter_lines()
            async with asyncio.timeout(20):
                while "mcp_tool_use" not in await anext(lines):
                    pass
                may_answer.set()
                rest = [line async for line in lines]
    started = [line for line in rest if "content_block_start" in line and line.startswith("data")]
    assert ["mcp_tool_result" in line for line in started] == [True, False]
    assert sum("message_stop" in line for line in rest if line.startswith("data")) == 1


@pytest.mark.worlds
async def test_the_next_request_goes_on_in_the_same_process_and_in_another(
    several: Client, connect: Connect, transport: Transport
) -> None:
    """MSG-62: the history is complete, so any process can take it, block by block."""
    first = await ask(several, add, transport)
    sent = several.received
    several.script("Bye.", "Bye.")
    await ask(several, add, transport, first.body["content"], "Thanks.")
    warm = several.received
    assert warm[: len(sent)] == sent
    assert warm[-1] == plain({"role": "user", "content": "Thanks."})
    await ask(connect(size=1), add, transport, first.body["content"], "Thanks.")
    assert several.received == warm


async def test_a_call_of_any_other_tool_ends_the_answer(several: Client, transport: Transport) -> None:
    """MSG-60, MSG-63, IPC-P-56: with all calls beside it, also those that run alone; their results come next."""
    ran: list[str | None] = []

    async def counted(call: CLICall) -> dict[str, object]:
        ran.append(call.id)
        return await add(call)

    several.script([says("Both."), *calls("add", "ask_user")], [*calls("add")], "Done.")
    with request_context(tools=tools(counted, transport, "add", sequential=frozenset({"add"}))):
        both = [tool("add"), tool("ask_user")]
        first = await several.ask("Add.", tools=both)
        assert kinds(first) == ["text", "tool_use", "tool_use"]
        assert first.stop_reason == "tool_use"
        made = first.body["content"][1:]
        assert [call["name"] for call in made] == ["add", "ask_user"]
        await several.settled()
        assert len(several.api.requests) == 1
        results = [{"type": "tool_result", "tool_use_id": call["id"], "content": "yes"} for call in made]
        second = await several.ask("Add.", first.body["content"], {"role": "user", "content": results}, tools=both)
    assert ran == [second.body["content"][0]["id"]]
    assert kinds(second) == ["mcp_tool_use", "mcp_tool_result", "text"]
    assert [block["content"] for block in several.api.requests[1]["messages"][-1]["content"]] == ["yes"] * 2


async def test_tools_run_in_the_callers_loop_and_context(several: Client, transport: Transport) -> None:
    """IPC-P-51"""
    owner = contextvars.ContextVar("whose", default="unknown")
    contexts: list[tuple[bool, str]] = []
    loop = asyncio.get_running_loop()

    async def look(_call: CLICall) -> dict[str, object]:
        contexts.append((asyncio.get_running_loop() is loop, owner.get()))
        return text("ok")

    owner.set("the caller's")
    await ask(several, look, transport)
    assert contexts == [(True, "the caller's")]


class Panic(BaseException):
    """An error that `except Exception` does not catch, as Rust extensions raise it."""


FAILURES: dict[str, object] = {
    "ValueError: the number is odd": ValueError("the number is odd"),
    "SystemExit: usage": SystemExit("usage"),
    "CancelledError": asyncio.CancelledError(),
    "Panic: index out of bounds": Panic("index out of bounds"),
    "ValidationError": {"content": [{"type": "hologram"}]},
    "TypeError": None,
    "500000": text("x" * 500_001),
}
"""Failing handlers by error text. The CLI would put the last text into a file."""


async def test_a_handler_that_fails_gives_the_model_an_error(several: Client, transport: Transport) -> None:
    """IPC-P-21: handlers that raise, return an invalid result, or return more than the CLI passes on."""
    for words, outcome in FAILURES.items():

        async def fail(_call: CLICall, outcome: object = outcome) -> dict[str, object]:
            if isinstance(outcome, BaseException):
                raise outcome
            return cast("dict[str, object]", outcome)

        several.script([*calls("add")], "Done.")
        answered = await ask(several, fail, transport)
        ((content, is_error),) = results(answered)
        assert is_error, words
        assert words in str(content)
        assert "Traceback" not in str(content)
        assert answered.stop_reason == "end_turn"


async def test_images_reach_the_model(several: Client, transport: Transport) -> None:
    async def picture(_call: CLICall) -> dict[str, object]:
        return {"content": [{"type": "image", "data": PNG, "mimeType": "image/png"}], "isError": False}

    several.script([*calls("add")], "Done.")
    await ask(several, picture, transport)
    (result,) = several.received[-1]["content"]
    (image,) = result["content"]
    assert (image["type"], image["source"]["data"]) == ("image", PNG)


async def test_giving_up_cancels_the_tool(several: Client, transport: Transport) -> None:
    """IPC-P-53, MSG-65"""
    has_begun, was_cancelled = asyncio.Event(), asyncio.Event()

    async def endless(_call: CLICall) -> dict[str, object]:
        has_begun.set()
        try:
            return await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            was_cancelled.set()
            raise

    several.script([*calls("add")], "Hello.")
    with request_context(tools=tools(endless, transport, "add")), anyio.fail_after(20):
        asking = asyncio.create_task(several.ask("Add.", tools=[tool("add")]))
        await has_begun.wait()
        asking.cancel()
        await was_cancelled.wait()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert (await several.ask("Hi.", tools=[tool("add")])).text == "Hello."


async def test_a_failure_after_a_call_is_not_to_be_repeated(several: Client, transport: Transport) -> None:
    """MSG-64: the tool's side effects would be repeated."""
    done: list[str] = []

    async def once(call: CLICall) -> dict[str, object]:
        done.append(call.name)
        several.api.fail_next(status=400, message="No more.")
        return text("ok")

    several.script([*calls("add")])
    answered = await ask(several, once, transport)
    assert (answered.status, answered.headers["x-should-retry"]) == (400, "false")
    assert done == ["add"]


@pytest.mark.deaths
async def test_a_process_dying_after_a_call_is_a_server_failure(connect: Connect, transport: Transport) -> None:
    """MSG-64: clients retry after a connection error."""
    several = connect(size=1)

    async def kill(_call: CLICall) -> dict[str, object]:
        assert sys.platform != "win32"
        os.kill(several.transport.pids[0], signal.SIGKILL)
        return text("ok")

    several.script([*calls("add")], "Hello.")
    with request_context(tools=tools(kill, transport, "add")):
        answered = await several.ask("Add.", tools=[tool("add")])
        assert (answered.status, answered.headers["x-should-retry"]) == (500, "false")
        assert "SIGKILL" in answered.error["message"]
        assert (await several.ask("Hi.", tools=[tool("add")])).text == "Hello."


async def test_a_failure_before_any_call_may_be_repeated(several: Client) -> None:
    several.api.fail_next(status=529, times=3)
    answered = await ask(several, add, "sdk")
    assert answered.status == 529
    assert "x-should-retry" not in answered.headers


async def test_the_cli_repeats_an_api_call_of_its_loop(several: Client) -> None:
    async def then_fail(call: CLICall) -> dict[str, object]:
        several.api.fail_next(status=529)
        return await add(call)

    several.script([*calls("add")], "Done.")
    answered = await ask(several, then_fail, "sdk")
    assert (answered.status, answered.text) == (200, "Done.")


async def test_other_tools_are_served_as_ever_but_for_those_of_the_api(several: Client) -> None:
    several.script("Hello.", [{"type": "tool_use", "name": "other", "input": {"a": 1, "b": 2}}])
    with request_context(tools=tools(add, "sdk", "add")):
        assert (await several.ask("Hi.")).text == "Hello."
        assert kinds(await several.ask("Hi.", tools=[tool("other")])) == ["tool_use"]
        search = {"type": "web_search_20250305", "name": "web_search"}
        refused = await several.ask("Hi.", tools=[tool("add"), search])
    assert refused.status == 400
    assert "tools.1" in refused.error["message"]


@pytest.mark.parametrize("name", ["", "a b", "a__b", "_a", "a_", "ü", "claude-code"])
def test_a_name_that_the_cli_would_change_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="MCP server"):
        CLITools(names=frozenset(), call=add, server_name=name)


async def test_a_listener_hears_all_messages_up_to_the_result(several: Client) -> None:
    names: list[str] = []
    has_ended = asyncio.Event()

    def hear(message: Message) -> None:
        names.append(type(message).__name__)
        if names[-1] == "ResultMessage":
            has_ended.set()

    with request_context(tools=tools(add, "sdk", "add"), on_message=hear), anyio.fail_after(20):
        await several.ask("Add.", tools=[tool("add")])
        await has_ended.wait()
    spoken = [name for name in names if name in ("AssistantMessage", "UserMessage", "ResultMessage")]
    assert spoken == ["AssistantMessage", "AssistantMessage", "UserMessage", "AssistantMessage", "ResultMessage"]


async def test_eight_loops_at_once_do_not_mix(several: Client, transport: Transport) -> None:
    async def one(number: int) -> None:
        async def mine(_call: CLICall) -> dict[str, object]:
            await asyncio.sleep(0.01 * (number % 3))
            return text(f"<{number}>")

        with request_context(tools=tools(mine, transport, "add")):
            answered = await several.ask(f"Number {number}.", tools=[tool("add")])
        assert results(answered) == [([{"type": "text", "text": f"<{number}>"}], False)]
        assert f"Number {number}." in answered.body["content"][-1]["text"]

    async with asyncio.TaskGroup() as group:
        for number in range(8):
            group.create_task(one(number))
