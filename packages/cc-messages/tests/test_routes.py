"""Which way a request goes to a process, counted; and that nobody waits for ever, nor gets another's answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import anyio

if TYPE_CHECKING:
    from .conftest import Client, Connect

CALL: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}


def echo(body: dict[str, Any]) -> str:
    """The last text of the conversation."""
    content = body["messages"][-1]["content"]
    return "You said " + (content if isinstance(content, str) else content[-1].get("text", "nothing"))


async def chat(client: Client, *prompts: str, **fields: Any) -> list[Any]:
    """One conversation, prompt by prompt."""
    messages: list[Any] = []
    for prompt in prompts:
        messages.append(prompt)
        reply = await client.ask(*messages, **fields)
        messages.append(reply.body["content"])
    return messages


async def test_a_chat_extends_one_process(client: Client) -> None:
    """MSG-11."""
    await chat(client, "one", "two", "three")
    assert client.routes == {"rebuild": 1, "extend": 2}


async def test_a_loop_of_tool_calls_resumes_one_process(client: Client) -> None:
    """MSG-10, MSG-19."""
    calls = [{**CALL, "id": f"toolu_{number}"} for number in range(4)]
    messages: list[Any] = ["Go."]
    for call in calls:
        client.answers([call])
        await client.ask(*messages)
        messages += [[call], [{**RESULT, "tool_use_id": call["id"]}]]
    client.answers(echo)
    await client.ask(*messages)
    await client.ask(*messages, "Done.", "Thanks.")
    assert client.routes == {"resume": 4, "rebuild": 2}
    assert [message["role"] for message in client.received] == ["user", "assistant"] * 5 + ["user"]


async def test_independent_prompts_share_one_process_and_no_word(client: Client) -> None:
    """MSG-12."""
    client.answers(echo)
    for prompt in ("one", "two", "three"):
        assert (await client.ask(prompt)).text == f"You said {prompt}"
        assert client.received == [{"role": "user", "content": [{"type": "text", "text": prompt}]}]
    assert client.routes == {"rebuild": 3}


async def test_conversations_that_take_turns_share_one_process(client: Client) -> None:
    client.answers(echo)
    first, second = await chat(client, "a1"), await chat(client, "b1")
    for messages in (first, second):
        reply = await client.ask(*messages, "go on")
        messages += ["go on", reply.body["content"]]
    assert [message["content"][0]["text"] for message in client.received] == ["b1", "You said b1", "go on"]
    assert client.routes == {"rebuild": 4}


async def test_conversations_at_the_same_time_keep_their_processes(connect: Connect, eventually: Any) -> None:
    client = connect(size=2)
    both_there = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def respond(body: dict[str, Any]) -> str:
        if len(client.api.requests) == 2:
            loop.call_soon_threadsafe(both_there.set)
        await eventually(both_there.is_set)
        return echo(body)

    client.answers(respond)
    first, second = await asyncio.gather(chat(client, "a1"), chat(client, "b1"))
    for messages in (first, second, first):
        await client.ask(*messages, "go on")
    assert client.routes == {"start": 2, "extend": 2, "rebuild": 1}


async def test_a_conversation_that_was_forked_goes_back_to_the_fork(client: Client) -> None:
    client.answers(echo)
    messages = await chat(client, "one", "two", "three")
    await client.ask(*messages[:4], "another three")
    assert [message["content"][0]["text"] for message in client.received][::2] == ["one", "two", "another three"]
    assert client.routes == {"extend": 2, "rebuild": 2}


async def test_other_tools_and_parameters_are_no_reason_for_another_route(client: Client) -> None:
    """MSG-03, MSG-04."""
    client.answers(echo)
    messages = await chat(client, "one", tools=[{"name": "f", "input_schema": {"type": "object"}}])
    await client.ask(*messages, "two", temperature=0.5)
    assert client.routes == {"rebuild": 1, "extend": 1}
    assert not client.api.requests[-1]["tools"]


async def test_another_system_prompt_takes_the_only_place(connect: Connect) -> None:
    """MSG-02."""
    client = connect(size=1)
    await client.ask("Hello.", system="Be brief.")
    [before] = client.transport.pids
    await client.ask("Hello.", system="Be verbose.")
    [after] = client.transport.pids
    assert before != after
    assert client.routes == {"start": 2}


async def test_the_same_request_twice_is_answered_twice(client: Client) -> None:
    """MSG-16."""
    client.answers(lambda body: f"Answer {len(client.api.requests)}.")
    assert [(await client.ask("Hello.")).text for _ in range(2)] == ["Answer 1.", "Answer 2."]


async def test_more_requests_than_processes_wait_and_get_their_own_answers(several: Client) -> None:
    """MSG-13."""
    client = several
    client.answers(echo)

    async def ask(number: int) -> str:
        return (await client.ask(f"token {number}", stream=number % 2 == 0)).text

    assert await asyncio.gather(*map(ask, range(24))) == [f"You said token {number}" for number in range(24)]
    assert len(client.api.requests) == 24
    assert len(client.transport.pids) <= 5
    assert sum(client.routes.values()) == 24


async def test_a_request_while_a_tool_runs_finds_a_process_and_the_loop_goes_on(client: Client) -> None:
    client.answers([CALL])
    with anyio.fail_after(20):
        assert (await client.ask("Go.")).stop_reason == "tool_use"
        client.answers(echo)
        assert (await client.ask("Inside of a tool.")).text == "You said Inside of a tool."
        assert (await client.ask("Go.", [CALL], [RESULT])).text == "You said nothing"
    assert len(client.transport.pids) == 1
    assert client.routes == {"rebuild": 3}


async def test_a_request_while_a_stream_is_read_finds_a_process(client: Client) -> None:
    client.answers("word " * 50)
    with anyio.fail_after(20):
        async with client.stream("Tell me.") as outer:
            chunks = outer.aiter_bytes()
            first: bytes = await anext(chunks)
            assert (await client.ask("Something else.")).status == 200
            rest = b"".join([chunk async for chunk in chunks])
    assert (first + rest).endswith(b'event: message_stop\ndata: {"type":"message_stop"}\n\n')


async def test_an_answer_that_the_client_returns_changed_is_written_anew(client: Client) -> None:
    client.answers(
        [
            {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
            {"type": "text", "text": "x"},
        ]
    )
    await client.ask("one")
    await client.ask("one", [{"type": "text", "text": "x"}], "two")
    assert client.received[1]["content"] == [{"type": "text", "text": "x"}]
    assert client.routes == {"rebuild": 2}


async def test_cache_breakpoints_do_not_change_the_route(client: Client) -> None:
    """MSG-06."""
    messages = await chat(client, "one", "two")
    marked = [{"type": "text", "text": "one", "cache_control": {"type": "ephemeral"}}]
    await client.ask(marked, *messages[1:], "three")
    assert client.routes == {"rebuild": 1, "extend": 2}
