"""The model's stop reason arrives unchanged, at once, whatever follow-up the CLI would like to send."""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import pytest
from claude_agent_sdk import ClaudeAgentOptions

from cc_loopback import LoopbackServer
from cc_messages.process.plan import Allowance, PlainPlan
from cc_messages.process.request_process import RequestProcess
from cc_session.internals import on_background
from warm_clients.api_data import CALL, THINKING, result, text
from warm_clients.client import Client
from warm_clients.fixtures import Connect

TEXT = text("Once upon")
LATER = {**CALL, "id": "toolu_2"}
FIRST: list[Any] = ["Go."]
AFTER_A_TOOL: list[Any] = ["a", [CALL], [result()]]

HISTORIES = pytest.mark.parametrize(
    "messages", [pytest.param(FIRST, marks=pytest.mark.worlds), AFTER_A_TOOL], ids=["first", "after a tool"]
)


async def answer(client: Client, messages: list[Any], message: dict[str, Any], *, stream: bool) -> Any:
    """Return the reply to `messages`, when the API has answered `message` once."""
    # The CLI's own requests have more messages.
    client.answers(lambda body: message if len(body["messages"]) == len(messages) else "An answer nobody asked for.")
    client.api.requests.clear()
    reply = await client.ask(*messages, stream=stream)
    assert (reply.status, reply.stop_reason) == (200, message["stop_reason"])
    assert client.arrivals(*messages) == 1
    return reply


@HISTORIES
async def test_an_answer_ends_at_its_end_and_costs_one_call(messages: list[Any], client: Client) -> None:
    """MSG-21, MSG-22"""
    for number, reason in enumerate(("end_turn", "stop_sequence", "pause_turn", "refusal", "a_new_reason")):
        message = {"content": [TEXT], "stop_reason": reason, "stop_sequence": "END"}
        reply = await answer(client, messages, message, stream=number % 2 == 0)
        assert reply.text == "Once upon"
        await client.settled()
        assert len(client.api.requests) == 1
        await client.answers_exactly(*messages, [TEXT], "Go on.")
    assert not client.starts


@HISTORIES
async def test_a_call_of_a_tool_ends_the_answer(messages: list[Any], client: Client) -> None:
    """MSG-21, MSG-24, MSG-72"""
    for content in ([LATER], [THINKING, TEXT, LATER]):
        for reason in ("tool_use", "max_tokens", "refusal"):
            await answer(client, messages, {"content": content, "stop_reason": reason}, stream=False)
            await client.settled()
            await client.answers_exactly(*messages, content, [result(identity="toolu_2")])
    assert not client.starts


# Answers that the CLI would continue, up to three times, or request again, up to two times.
NO_END: dict[str, dict[str, Any]] = {
    "max_tokens": {"content": [TEXT], "stop_reason": "max_tokens"},
    "context window": {"content": [TEXT], "stop_reason": "model_context_window_exceeded"},
    "max_tokens while thinking": {"content": [THINKING], "stop_reason": "max_tokens"},
    "no content": {"content": [], "stop_reason": "end_turn"},
    "only blanks": {"content": [text(" \n")], "stop_reason": "end_turn"},
    "only thinking": {"content": [THINKING], "stop_reason": "end_turn"},
    "no call": {"content": [TEXT], "stop_reason": "tool_use"},
}


@HISTORIES
async def test_an_answer_that_the_cli_would_continue_costs_one_call(messages: list[Any], client: Client) -> None:
    """MSG-21, MSG-22, MSG-R2"""
    for message in NO_END.values():
        for stream in (False, True):
            await answer(client, messages, message, stream=stream)
            await client.settled()
            assert len(client.api.requests) == 1
            if message["content"] == [TEXT]:
                await client.answers_exactly(*messages, [TEXT], "Go on.")
                if message["stop_reason"] != "tool_use":
                    await client.answers_exactly(*messages, [TEXT], "Go on.", "Fine.", "And on.")
            await client.answers_exactly(*messages)
    assert not client.starts


def only_process(client: Client) -> RequestProcess:
    """Return the client's one process, between two requests."""
    [worker] = client.transport._pool.core._processes.workers  # pyright: ignore[reportPrivateUsage]
    assert isinstance(worker.adapter, RequestProcess)
    return worker.adapter


def allowed_tokens(client: Client) -> int:
    """Return the allowed prompt length in the client's one process, between two requests."""
    plan = only_process(client)._plan  # pyright: ignore[reportPrivateUsage]
    assert isinstance(plan, PlainPlan)
    return plan._allowed._tokens  # pyright: ignore[reportPrivateUsage]


@pytest.mark.worlds
async def test_with_a_subscription_each_model_has_an_allowance(connect: Connect, shared_api: LoopbackServer) -> None:
    """MSG-21: a message about the model counts, which is shorter for some models than for others."""
    client = connect(env=shared_api.env("oauth"), size=1)
    client.answers(NO_END["no content"])
    models = ["claude-sonnet-4-6", "databricks-claude-sonnet-4-5", "claude-sonnet-4-6", "databricks-claude-sonnet-4-5"]
    tokens: list[int] = []
    for model in models:
        await client.ask("Go.", model=model)
        await client.settled()
        tokens.append(allowed_tokens(client))
    assert tokens[:2] == tokens[2:]
    assert tokens[0] > tokens[1] + 22  # the least that the CLI would add for a second call
    await client.transport.aclose()
    assert [body["model"] for body in client.api.requests] == models


async def test_a_mark_is_sent_again_if_a_cancel_came_while_it_was_sent() -> None:
    """MSG-21: nobody knows whether the CLI has it."""
    outcomes: list[BaseException | None] = [asyncio.CancelledError(), None]

    class Process:
        info: Mapping[str, object] = {}

        async def add_assistant(self, *_: object, **__: object) -> None:
            if (error := outcomes.pop(0)) is not None:
                raise error

    allowance = Allowance(cast(Any, Process()), ClaudeAgentOptions())
    with pytest.raises(asyncio.CancelledError):
        await allowance.begin("a-model", is_first_use=True)
    for _ in range(2):  # the second finds it sent
        await allowance.begin("a-model", is_first_use=False)
    assert not outcomes


async def test_a_rest_of_an_earlier_prompt_raises_no_allowance(client: Client) -> None:
    """MSG-21: otherwise such a rest would let the CLI make second calls."""
    await client.answers_exactly("Go.")
    await client.settled()
    tokens = allowed_tokens(client)
    await on_background(only_process(client).session.add_user, "A rest of an earlier prompt. " * 9)
    await client.answers_exactly("Go.")
    assert allowed_tokens(client) == tokens
    await client.settled()
    await answer(client, FIRST, NO_END["no content"], stream=False)
    await client.settled()
    assert len(client.api.requests) == 1
    await client.transport.aclose()
