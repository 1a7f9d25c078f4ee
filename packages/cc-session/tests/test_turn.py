"""A prompt and its `Turn`: contents and limits."""

import json
import logging
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, ResultMessage, StreamEvent

from cc_loopback import JsonObject, LoopbackServer, Reply
from cc_session import Session
from cc_types import CLIConnectionError, CLIResponse

from .conftest import FakeCLI, all_raise

MODEL = "claude-sonnet-5"
# Prices per million tokens, in US dollars: input and output.
PRICES = {"claude-sonnet-5": (2, 10), "claude-opus-5": (5, 25)}


def costly(body: JsonObject) -> Reply:
    """An answer that takes a thousand tokens to read and a hundred to write."""
    return {"content": [{"type": "text", "text": "Hello."}], "usage": {"input_tokens": 1000, "output_tokens": 100}}


def cost(model: str) -> float:
    into, out = PRICES[model]
    return (1000 * into + 100 * out) / 1_000_000


def texts(body: JsonObject) -> list[str]:
    """The texts in a request's messages."""
    contents = [message["content"] for message in body["messages"]]
    blocks = [[{"text": content}] if isinstance(content, str) else content for content in contents]
    return [block["text"] for content in blocks for block in content if "text" in block]


async def test_a_turn_holds_all_that_came_of_it(server: LoopbackServer, session: Session) -> None:
    """SES-03: also with a prompt in content blocks."""
    server.respond = costly
    turns, spent = session.turns, session.cost_usd

    turn = await session.run([{"type": "text", "text": "One"}, {"type": "text", "text": "Two"}])

    assert texts(server.requests[-1]) == ["One", "Two"]

    assert turn.text == "Hello."
    assert isinstance(turn.messages[-1], ResultMessage)
    assert turn.result is turn.messages[-1]
    assert any(isinstance(message, StreamEvent) for message in turn.messages)
    assert turn.session_id == turn.result.session_id
    assert turn.structured_output is None
    assert (turn.usage.input_tokens, turn.usage.output_tokens) == (1000, 100)
    assert turn.cost_usd == pytest.approx(cost(MODEL))
    assert turn.model_usage[MODEL].output_tokens == 100
    assert isinstance(turn.response, CLIResponse)
    assert turn.response.succeeded
    assert turn.response.result == "Hello."
    assert (session.turns, session.state) == (turns + 1, "idle")
    assert session.cost_usd == pytest.approx(spent + turn.cost_usd)
    assert pickle.loads(pickle.dumps(turn)) == turn


async def test_an_object_that_was_asked_for_is_in_the_turn(server: LoopbackServer, options: ClaudeAgentOptions) -> None:
    """SES-03."""
    schema = {"type": "object", "properties": {"city": {"type": "string", "enum": ["Paris"]}}, "required": ["city"]}
    options = replace(options, output_format={"type": "json_schema", "schema": schema}, max_turns=None)
    async with await Session.open(options) as session:
        assert (await session.run("Where?")).structured_output == {"city": "Paris"}


async def test_costs_are_differences_that_add_up_across_conversation_changes(
    server: LoopbackServer, own_session: Session
) -> None:
    """SES-04: the CLI's totals start again at a clear and not at a rewind; models have different prices."""
    server.respond, session = costly, own_session
    turns = [await session.run("One"), await session.run("Two")]
    await session.reset()
    turns.append(await session.run("Three"))
    await session.add_user("Noted.")
    await session.add_assistant("Indeed.", model=MODEL)
    turns.append(await session.run("Four"))
    await session.reset(tools_changed=True)
    turns.append(await session.run("Five"))
    turns.append(await session.run("Six"))
    await session.set_model("claude-opus-5")
    dear = await session.run("Seven")

    assert [turn.cost_usd for turn in turns] == [pytest.approx(cost(MODEL))] * 6
    assert [turn.usage.input_tokens for turn in [*turns, dear]] == [1000] * 7
    assert [{model: used.input_tokens for model, used in turn.model_usage.items()} for turn in turns] == [
        {MODEL: 1000}
    ] * 6
    assert dear.cost_usd == pytest.approx(cost("claude-opus-5"))
    assert {model: used.input_tokens for model, used in dear.model_usage.items()} == {"claude-opus-5": 1000}
    assert session.cost_usd == pytest.approx(6 * cost(MODEL) + cost("claude-opus-5"))
    assert session.turns == 7


@pytest.mark.worlds
async def test_what_a_resumed_conversation_had_cost_is_not_counted_again(
    server: LoopbackServer, options: ClaudeAgentOptions, tmp_path: Path
) -> None:
    """SES-04: the CLI's totals continue."""
    server.respond = costly
    # With a configuration that stays, and a transcript in it.
    options = replace(options, extra_args={}, cwd=tmp_path)
    async with await Session.open(options) as session:
        first = await session.run("One")
    async with await Session.open(replace(options, resume=first.session_id)) as session:
        second = await session.run("Two", max_cost_usd=1.5 * cost(MODEL))
        assert session.cost_usd == pytest.approx(cost(MODEL))

    assert "One" in texts(server.requests[-1])
    assert second.result.total_cost_usd == pytest.approx(2 * cost(MODEL))
    assert second.cost_usd == pytest.approx(cost(MODEL))
    assert second.model_usage[MODEL].input_tokens == 1000


@pytest.mark.worlds
async def test_a_session_that_lacks_another_s_turns_does_not_continue_their_conversation(
    server: LoopbackServer, options: ClaudeAgentOptions, tmp_path: Path
) -> None:
    """SES-136: whoever resumed it afterwards would get one of the branches. A fork is a conversation of its own."""
    options = replace(options, extra_args={}, cwd=tmp_path)
    async with await Session.open(options) as first:
        begun = (await first.run("One")).session_id
        resumed = replace(options, resume=begun)
        async with (
            await Session.open(resumed) as second,
            await Session.open(replace(resumed, fork_session=True)) as fork,
        ):
            await first.run("Two")
            await fork.run("Another two")
            lost = second.run("Lost"), second.add_user("Lost")
            await all_raise(CLIConnectionError, *lost, match=f"continued.*{begun}")
        async with await Session.open(resumed) as third:
            await third.run("Three")
            assert all(word in texts(server.requests[-1]) for word in ("One", "Two", "Three"))
        await all_raise(CLIConnectionError, first.run("Lost"))


async def test_tokens_of_a_turn_with_several_calls_and_blocks_are_counted_once(
    server: LoopbackServer, bash_session: Session, calls_bash: Callable[..., None]
) -> None:
    """SES-05."""
    calls_bash("echo one", usage={"input_tokens": 1000, "output_tokens": 100})
    turn = await bash_session.run("Go.")

    assert len(server.requests) == 2
    assert (turn.usage.input_tokens, turn.usage.output_tokens) == (2000, 200)
    assert turn.model_usage[MODEL].input_tokens == 2000
    ids = [message.message_id for message in turn.messages if isinstance(message, AssistantMessage)]
    assert len(ids) > len({*ids})  # else nothing is repeated, and this test proves nothing


async def test_a_limit_that_makes_no_sense_is_refused_and_nothing_is_sent(
    server: LoopbackServer, session: Session
) -> None:
    turns = session.turns
    limits: list[Any] = [{"timeout": 0}, {"timeout": float("nan")}, {"max_cost_usd": -1.0}]
    for limit in limits:
        with pytest.raises(ValueError, match="must be"):
            await session.run("Hello?", **limit)
        with pytest.raises(ValueError, match="must be"):
            session.stream("Hello?", **limit)
    assert (session.turns, server.requests) == (turns, [])


STRANGE = """
print("[debug] hello\\n\\n  \\n[1, 2]")
send(type="never_heard_of")
send(type="control_response", response={"subtype": "success", "request_id": "unknown"})
initialize()
frame = json.loads(sys.stdin.readline())
send(type="never_heard_of", uuid="x")
send(type="tool_progress", uuid="x", session_id="s", tool_use_id="t", tool_name="Bash", elapsed_time_seconds=30)
send(type="system", subtype="never_heard_of", uuid="x", session_id="s")
send(type="control_response", response={"subtype": "success", "request_id": "unknown", "response": {}})
send(type="control_cancel_request", request_id="unknown")
content = [{"type": "hologram", "data": 1}, {"type": "text", "text": "Hello."}]
message = {"id": "msg_1", "role": "assistant", "model": "m", "content": content}
send(type="assistant", message=message, session_id="s", uuid="y", parent_tool_use_id=None)
result(frame, result="Hello.", field_of_tomorrow=1)
sys.stdin.read()
"""


async def test_what_is_unknown_is_ignored_and_the_turn_goes_on(
    fake_cli: FakeCLI, caplog: pytest.LogCaptureFixture
) -> None:
    """SES-35, SES-28: the log names it, unless Claude Code sends it for every half minute of a tool."""
    caplog.set_level(logging.DEBUG)
    async with await Session.open(fake_cli(STRANGE)) as session:
        turn = await session.run("Hello?")

    [answer] = [message for message in turn.messages if isinstance(message, AssistantMessage)]
    assert [type(block).__name__ for block in answer.content] == ["TextBlock"]
    assert turn.text == "Hello."
    assert "never_heard_of" in caplog.text
    assert "tool_progress" not in caplog.text


ASKS = """
initialize()
frame = json.loads(sys.stdin.readline())
for number, subtype in enumerate(["no_such_request", "can_use_tool", "hook_callback", "mcp_message"]):
    send(type="control_request", request_id=f"mine-{number}", request={"subtype": subtype, "callback_id": "x"})
answers = [json.loads(sys.stdin.readline())["response"] for _ in range(4)]
result(frame, result=json.dumps([[answer["request_id"], answer["subtype"]] for answer in answers]))
sys.stdin.read()
"""


async def test_an_unanswerable_cli_request_gets_an_error_with_its_id(fake_cli: FakeCLI) -> None:
    """SES-31: never a success, and never silence."""
    async with await Session.open(fake_cli(ASKS)) as session:
        turn = await session.run("Hello?", timeout=10)

    assert sorted(json.loads(turn.text)) == [[f"mine-{number}", "error"] for number in range(4)]


BY_ITSELF = """
def injected():
    send(type="result", subtype="success", duration_ms=1, duration_api_ms=1, is_error=False, num_turns=1,
         session_id="s", result="wrong", origin={"kind": "task-notification"})

initialize()
for number, frame in enumerate(frames()):
    injected()
    result({"uuid": "foreign"}, result="wrong")
    result(frame, result=f"right {number}")
    injected()
"""


async def test_what_the_cli_does_by_itself_is_nobody_s_answer(fake_cli: FakeCLI) -> None:
    """SES-09: such as a turn about a finished background task, in the middle of a turn or between two."""
    async with await Session.open(fake_cli(BY_ITSELF)) as session:
        assert [(await session.run("Hello?")).text for _ in range(3)] == ["right 0", "right 1", "right 2"]
        await session.add_user("Noted?")
        assert (await session.run("Hello?")).text == "right 4"
