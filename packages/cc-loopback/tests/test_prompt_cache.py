"""Counts of the input: what the API reads from its prompt cache, and what it writes."""

from typing import Any

import pytest
from anthropic import Anthropic

from cc_loopback import LoopbackServer

from .conftest import Connect

Body = dict[str, Any]
EPHEMERAL: Body = {"type": "ephemeral"}
LONG = "a word " * 1000  # 1,750 tokens, and those of the JSON around


def text(words: str, **fields: Any) -> Body:
    return {"type": "text", "text": words, **fields}


@pytest.fixture
def client(fine: LoopbackServer, connect: Connect) -> Anthropic:
    return connect(fine)


def counts(client: Anthropic, system: Any, *contents: Any, **fields: Any) -> tuple[int, int, int]:
    """Return the tokens of the input that are neither read nor written, that are written, and that are read."""
    roles = ("user", "assistant") * len(contents)
    messages: Any = [{"role": role, "content": content} for role, content in zip(roles, contents, strict=False)]
    beta: Any = client.beta
    usage = beta.messages.create(model="m", max_tokens=9, system=system, messages=messages, **fields).usage
    return usage.input_tokens, usage.cache_creation_input_tokens or 0, usage.cache_read_input_tokens or 0


def test_nothing_is_cached_without_a_breakpoint(client: Anthropic) -> None:
    """LOOP-28"""
    first = counts(client, LONG, "Hello.")
    assert first[0] > 1750 and first[1:] == (0, 0)
    assert counts(client, [text(LONG)], [text("Hello.")]) == first


def test_a_prompt_is_written_up_to_its_breakpoint_and_then_read(client: Anthropic, fine: LoopbackServer) -> None:
    """LOOP-28"""
    system = [text(LONG, cache_control=EPHEMERAL)]
    total = counts(client, LONG, "Hello.")[0]
    rest, written, read = counts(client, system, "Hello.")
    assert (rest + written, read) == (total, 0)
    assert counts(client, system, "Hello.") == (rest, 0, written)
    assert counts(client, [text(LONG)], "Hello.") == (total, 0, 0)
    assert counts(client, [text("B" + LONG, cache_control=EPHEMERAL)], "Hello.")[2] == 0
    fine.reset()
    assert counts(client, system, "Hello.") == (rest, written, 0)


def test_facts_about_claude_code_are_not_in_the_prompt(client: Anthropic) -> None:
    """LOOP-28: at Anthropic's own host they change with each request."""
    blocks = [[text(f"x-anthropic-billing-header: cch={n};"), text(LONG, cache_control=EPHEMERAL)] for n in (1, 2)]
    [(_, written, _), (_, more, read)] = [counts(client, system, "Hello.") for system in blocks]
    assert (more, read) == (0, written)


def test_a_conversation_reads_what_the_last_request_has_written(client: Anthropic) -> None:
    """LOOP-28: also with a breakpoint of the whole request."""
    _, written, _ = counts(client, LONG, "Hello.", cache_control=EPHEMERAL)
    rest, more, read = counts(client, LONG, "Hello.", "fine", [text(LONG)], cache_control=EPHEMERAL)
    assert (rest, read) == (0, written)
    assert 1750 < more < 1850


def test_short_prompts_are_not_cached(client: Anthropic) -> None:
    """LOOP-28"""
    for _ in range(2):
        assert counts(client, [text("Be brief.", cache_control=EPHEMERAL)], "Hello.")[1:] == (0, 0)
