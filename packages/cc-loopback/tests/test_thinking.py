"""Signed thinking: what a later request may change, with the official client."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from anthropic import Anthropic, BadRequestError

from cc_loopback import Cassette, LoopbackServer

from .conftest import Connect

Body = dict[str, Any]
TOOL = {"name": "look", "input_schema": {"type": "object"}}
LOOK = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": 1.0}}
DROP = {"thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}}


def thinks(body: Body) -> list[Body]:
    number = sum(message["role"] == "assistant" for message in body["messages"])
    hidden = {"type": "redacted_thinking", "data": "hidden"}
    return [{"type": "thinking", "thinking": f"Thought {number}."}, LOOK] if number == 0 else [hidden, text("Seen.")]


def text(words: str) -> Body:
    return {"type": "text", "text": words}


def said(role: str, *blocks: Body) -> Body:
    return {"role": role, "content": [*blocks]}


@pytest.fixture
def api(stack: ExitStack) -> LoopbackServer:
    return stack.enter_context(LoopbackServer(thinks, signs_thinking=True))


@pytest.fixture
def client(api: LoopbackServer, connect: Connect) -> Anthropic:
    return connect(api)


def ask(client: Anthropic, body: Body, *, stream: bool = False) -> Body:
    beta: Any = client.beta
    if stream:
        with beta.messages.stream(**body) as events:
            message = events.get_final_message()
    else:
        message = beta.messages.create(**body)
    return message.model_dump(exclude_none=True, exclude={"content": {"__all__": {"parsed_output"}}})


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def conversation(client: Anthropic, request: pytest.FixtureRequest) -> Body:
    """Return a request whose history has a thinking block, and then a redacted one."""
    body: Body = {
        "model": "claude-opus-5-5",
        "max_tokens": 9,
        "system": "Be brief.",
        "tools": [TOOL],
        "messages": [{"role": "user", "content": "Look."}],
    }
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [text("a cat")]}
    for answer in (said("user", result), said("user", text("And now?"))):
        message = ask(client, body, stream=request.param)
        body["messages"] += [said("assistant", *message["content"]), answer]
    return body


def moved_breakpoint(body: Body) -> None:
    body["system"] = [text("Be brief.") | {"cache_control": {"type": "ephemeral"}}]
    body["messages"][0]["content"] = [text("Look.")]


def facts_about_claude_code(body: Body) -> None:
    body["system"] = [text("x-anthropic-billing-header: cch=1a2b3;"), text(body["system"])]


def another_effort(body: Body) -> None:
    body["output_config"] = {"effort": "low"}


def a_number_as_javascript_writes_it(body: Body) -> None:
    body["messages"][1]["content"][1]["input"] = {"at": 1}


def no_thinking_at_first(body: Body) -> None:
    del body["messages"][1]["content"][0]


def no_thinking(body: Body) -> None:
    no_thinking_at_first(body)
    del body["messages"][3]["content"][0]


@pytest.mark.parametrize(
    "change",
    [
        moved_breakpoint, facts_about_claude_code, another_effort, a_number_as_javascript_writes_it,
        no_thinking_at_first, no_thinking,
    ],
)  # fmt: skip
def test_changes_outside_the_prefix_are_accepted(
    change: Callable[[Body], None], conversation: Body, client: Anthropic
) -> None:
    """LOOP-26"""
    change(conversation)
    assert "input_transformations" not in ask(client, conversation)


def another_system_prompt(body: Body) -> None:
    body["system"] += " Please."


def another_tool(body: Body) -> None:
    body["tools"].append(TOOL | {"name": "feel"})


def another_first_message(body: Body) -> None:
    body["messages"][0]["content"] = "Look!"


def other_thinking(body: Body) -> None:
    body["messages"][1]["content"][0]["thinking"] += " Yes."


def other_arguments(body: Body) -> None:
    body["messages"][1]["content"][1]["input"] = {"at": 2}


def a_new_block_before(body: Body) -> None:
    body["messages"][3]["content"].insert(0, text("Hm."))


CHANGES: dict[Any, list[int]] = {
    another_system_prompt: [1, 3],
    another_tool: [1, 3],
    another_first_message: [1, 3],
    other_thinking: [1],
    other_arguments: [3],
}


@pytest.mark.parametrize("change", [*CHANGES, a_new_block_before])
def test_thinking_with_another_prefix_is_refused(
    change: Callable[[Body], None], conversation: Body, client: Anthropic, api: LoopbackServer
) -> None:
    """LOOP-26"""
    change(conversation)
    with pytest.raises(BadRequestError, match="The block is bound to a different conversation"):
        ask(client, conversation)
    with pytest.raises(BadRequestError, match="The block is bound to a different conversation"):
        client.beta.messages.count_tokens(
            **{name: value for name, value in conversation.items() if name != "max_tokens"}
        )
    assert not api.errors


def test_thinking_of_another_model_is_dropped_without_an_error(conversation: Body, client: Anthropic) -> None:
    """LOOP-26"""
    message = ask(client, {**conversation, "model": "claude-sonnet-5-5", "system": "Another."})
    assert {entry["reason"] for entry in message["input_transformations"]} == {"model_binding_mismatch"}
    assert len(message["input_transformations"]) == 2


@pytest.mark.parametrize("index", [1, 3])
def test_a_signature_of_another_server_is_refused(index: int, conversation: Body, client: Anthropic) -> None:
    """LOOP-26"""
    block = conversation["messages"][index]["content"][0]
    block |= {name: "c2lnbmVk" for name in ("signature", "data") if name in block}
    with pytest.raises(BadRequestError, match=rf"messages\.{index}\.content\.0: Invalid"):
        ask(client, conversation | DROP)


def test_a_cassette_signs_nothing() -> None:
    """LOOP-26"""
    with pytest.raises(ValueError, match="leave out `signs_thinking`"):
        LoopbackServer(cassette=Cassette("a.json"), signs_thinking=True)
