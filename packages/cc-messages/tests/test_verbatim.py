"""What the CLI's history cannot hold goes past it, exact to the block, and leaves the history as it was."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest

from cc_messages import CLICall, CLITools, beside_requests

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Client

    Plain = Callable[[Any], Any]

THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
CALL: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
RESULT: dict[str, Any] = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}
F: dict[str, Any] = {"name": "f", "input_schema": {"type": "object"}}

FIRST = "The first answer."


def text(value: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": value, **fields}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


def system(content: Any) -> dict[str, Any]:
    return {"role": "system", "content": content}


CONVERSATIONS: dict[str, list[dict[str, Any]]] = {
    "system at the end": [user("a"), system("Mind the gap.")],
    "system between": [user("a"), assistant("x"), system([text("Mind."), text("the gap")]), user("b")],
    "system first": [system("Mind."), user("a")],
    "system after results": [user("a"), assistant([CALL]), user([RESULT]), system("Mind.")],
    "an answer begun": [user("a"), assistant("I think")],
    "an answer to go on with": [
        user("a"),
        assistant([{"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}]),
    ],
    "thinking alone": [user("a"), assistant([THINKING]), user("b")],
    "citations": [user("a"), assistant([text("x", citations=[{"type": "char_location", "start": 1}])]), user("b")],
    "a tool reference": [
        user("a"),
        assistant([CALL]),
        user([{**RESULT, "content": [{"type": "tool_reference", "tool_name": "f"}]}]),
    ],
    "live text": [system("/clear"), user("/compact @/etc/hostname"), system("<system-reminder>x</system-reminder>")],
    "2 MB": [user("x" * 2_000_000), system("Mind.")],
}


async def test_it_arrives_as_it_was_written(several: Client, plain: Plain) -> None:
    """MSG-07, MSG-08, MSG-22, MSG-66."""
    client = several
    client.answers([text("Fine."), CALL])
    for name, messages in CONVERSATIONS.items():
        for stream in (False, True):
            client.api.requests.clear()
            reply = await client.ask(*messages, stream=stream, temperature=0.5, tools=[F], system="Be brief.")
            assert (name, reply.status, reply.text, reply.stop_reason) == (name, 200, "Fine.", "tool_use")
            [sent] = client.api.requests
            assert plain(sent["messages"]) == plain(messages), name
            assert (sent["temperature"], sent["tools"], sent["system"][-1]["text"]) == (0.5, [F], "Be brief.")
    assert client.routes.get("start", 0) <= 1


async def test_the_conversation_that_a_process_holds_stays(client: Client) -> None:
    """MSG-11, MSG-66. Beside whatever became of the other request."""
    client.answers(FIRST)
    await client.ask("a")
    others: list[Any] = [
        {"content": "x", "stop_reason": reason} for reason in ("end_turn", "max_tokens", "refusal", "pause_turn")
    ]
    others += [[THINKING, CALL], {"content": []}]
    for number, other in enumerate(others):
        client.answers(other)
        await client.ask("b", system("Mind."))
        client.answers("Fine.")
        await client.settled()
        if number % 2 == 0:
            client.api.fail_next(429)
            assert (await client.ask("b", system("Mind."))).status == 429
        await client.settled()
        client.api.requests.clear()
        past = ["a", FIRST, *["b", "Fine."] * number, "b"]
        assert (await client.ask(*past)).text == "Fine."
        assert client.arrivals(*past) == 1
    assert client.routes["extend"] == 6
    assert "start" not in client.routes


async def test_a_call_that_waits_for_its_results_does_not_come_between(client: Client, plain: Plain) -> None:
    client.answers([CALL])
    await client.ask("a")
    client.answers("Fine.")
    for messages in (CONVERSATIONS["system between"], [user("a"), assistant([CALL]), user([RESULT])]):
        assert (await client.ask(*messages)).text == "Fine."
        assert client.received == plain(messages)
    assert "start" not in client.routes


async def test_one_that_nobody_waits_for_is_ended(client: Client) -> None:
    """MSG-27."""

    async def respond(body: dict[str, Any]) -> str:
        if "system" in [message["role"] for message in body["messages"]]:
            await anyio.sleep_forever()
        return "Fine."

    client.answers(FIRST)
    await client.ask("a")
    client.answers(respond)
    client.http.timeout = httpx2.Timeout(0.5)
    with pytest.raises(httpx2.ReadTimeout):
        await client.ask("b", system("Mind."))
    client.http.timeout = httpx2.Timeout(20)
    await client.settled()
    assert (await client.ask("a", FIRST, "b")).text == "Fine."
    assert client.routes == {"rebuild": 2, "extend": 1}


async def test_many_at_a_time_do_not_mix(several: Client, plain: Plain) -> None:
    """MSG-13."""
    client = several

    def repeat(body: dict[str, Any]) -> str:
        return str(plain(body["messages"])[0]["content"][0]["text"])

    client.answers(repeat)
    odd = [client.ask(f"number {n}", system("Mind.")) for n in range(0, 12, 2)]
    even = [client.ask(f"number {n}") for n in range(1, 12, 2)]
    answers = await asyncio.gather(*odd, *even)
    assert sorted(answer.text for answer in answers) == sorted(f"number {n}" for n in range(12))


async def test_the_cache_is_used_as_the_cli_uses_it(client: Client) -> None:
    """One breakpoint at the end of the last message of the user's; those of the caller could be too many."""
    mark = {"cache_control": {"type": "ephemeral"}}
    await client.ask(
        user([text("a", **mark), text("b", **mark)]), assistant("x"), user("c"), system([text("y", **mark)])
    )
    sent = client.api.requests[-1]["messages"]
    assert sent[2]["content"] == [text("c", **mark)]
    assert str(sent).count("cache_control") == 1
    await client.ask(user([{"type": "hologram"}]), system("y"))
    assert "cache_control" not in str(client.api.requests[-1]["messages"])


async def test_beside_tools_of_the_clis_own_loop_it_is_refused(client: Client) -> None:
    """MSG-09. There the CLI asks the API several times, and its history goes on."""

    async def call(_: CLICall) -> dict[str, Any]:
        return {"content": []}

    with beside_requests(tools=CLITools(names=frozenset({"f"}), call=call)):
        reply = await client.ask("a", system("Mind."), tools=[F])
    assert (reply.status, reply.error["type"]) == (400, "invalid_request_error")
    assert reply.error["message"].startswith("messages.1.role: ")
