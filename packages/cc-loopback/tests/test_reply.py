"""Replies from a responder, and reports about invalid replies."""

import json
from pathlib import Path
from typing import Any, cast

import anthropic
import pytest
from anthropic import Anthropic

from cc_loopback import LoopbackServer, ReplyError
from cc_loopback.api.reply import make_message

from .conftest import BODY, Connect, Serve, ask

FILE = Path(__file__)
PLACE = FILE.relative_to(Path.cwd()) if FILE.is_relative_to(Path.cwd()) else FILE

COUNTS = {"input_tokens": 13}
WRONG: list[tuple[Any, str]] = [
    (None, "a responder must return blocks, a str or a message dict, not NoneType"),
    (b"bytes", "not bytes"),
    ({}, "a message needs 'content'"),
    ({"content": [], "stopreason": "end_turn"}, r"a message has unknown fields \['stopreason'\]"),
    ({"content": 1}, "content must be a str or a list of blocks, not int"),
    ({"content": "x", "usage": 3}, "usage must be a dict, not int"),
    ({"content": "x", "usage": {"output_tokens": "3"}}, "usage needs 'output_tokens' as an int"),
    (["text"], r"content\[0\] must be a content block \(a dict\), not str"),
    ([{"text": "x"}], r"content\[0\] needs a 'type'"),
    ([{"type": "text", "text": "x"}, {"type": "text"}], r"content\[1\] \(text\) needs 'text' as a str"),
    ([{"type": "thinking", "text": "x"}], r"content\[0\] \(thinking\) needs 'thinking' as a str"),
    ([{"type": "thinking", "thinking": "x", "signature": None}], "needs 'signature' as a str"),
    ([{"type": "redacted_thinking"}], "needs 'data' as a str"),
    ([{"type": "tool_use", "input": {}}], "needs 'name' as a str"),
    ([{"type": "tool_use", "name": "x", "input": "{}"}], "needs 'input' as a dict"),
    ([{"type": "tool_use", "name": "x", "input": {"at": object()}}], "cannot be written as JSON"),
    ([{"type": "tool_use", "name": "x", "input": {"at": float("nan")}}], "cannot be written as JSON"),
    ("lone \ud800 surrogate", "cannot be written as JSON"),
]


@pytest.mark.parametrize(("reply", "complaint"), WRONG)
def test_invalid_reply_is_refused_with_the_place_of_the_error(reply: Any, complaint: str) -> None:
    with pytest.raises(ReplyError, match=complaint):
        make_message(reply, BODY, COUNTS)


def test_usage_is_the_same_for_the_same_request_and_reply() -> None:
    reply = [{"type": "text", "text": "x" * 40}, {"type": "tool_use", "name": "f", "input": {"a": 1}}]
    usages = [make_message(reply, BODY, COUNTS)["usage"] for _ in range(2)]
    assert usages[0] == usages[1]
    assert usages[0]["output_tokens"] == (40 + len('{"a": 1}')) // 4


def test_invalid_reply_is_a_server_error_and_added_to_errors(serve: Serve, connect: Connect) -> None:

    def without_text(body: dict[str, Any]) -> list[dict[str, str]]:
        return [{"type": "text"}]

    server = serve(without_text)
    with pytest.raises(anthropic.APIStatusError) as caught:
        ask(connect(server))
    problem = "ReplyError: content[0] (text) needs 'text' as a str, from the responder "
    assert problem in str(caught.value)
    # LOOP-62: the place of the definition, because the error came after it.
    line = without_text.__code__.co_firstlineno
    assert f"without_text at {PLACE}:{line}. The test's script failed, not the API." in str(caught.value)
    assert [type(error) for error in server.errors] == [ReplyError]


def look_up(cities: dict[str, str]) -> str:
    return cities["nope"]


LOOK_UP = look_up.__code__.co_firstlineno


def plain(body: dict[str, Any]) -> str:
    return look_up({})


async def awaited(body: dict[str, Any]) -> str:
    return look_up({})


def interrupted(body: dict[str, Any]) -> str:
    raise KeyboardInterrupt("nope")


def in_a_library(body: dict[str, Any]) -> str:
    return json.loads("nope")


class Script:
    def __call__(self, body: dict[str, Any]) -> str:
        return look_up({})


@pytest.mark.parametrize(
    ("respond", "error", "place"),
    [
        (plain, "KeyError: 'nope'", f"raised by the responder plain at {PLACE}:{LOOK_UP + 1}"),
        (awaited, "KeyError: 'nope'", f"raised by the responder awaited at {PLACE}:{LOOK_UP + 1}"),
        (interrupted, "KeyboardInterrupt: nope", f"raised by the responder interrupted at {PLACE}:"),
        (in_a_library, "JSONDecodeError: ", f"raised by the responder in_a_library at {PLACE}:"),
        (Script(), "KeyError: 'nope'", f"raised by the responder Script.__call__ at {PLACE}:{LOOK_UP + 1}"),
        (iter(()).__next__, "TypeError: ", "from the responder tuple_iterator.__next__"),
    ],
)
def test_an_error_of_a_responder_has_its_place_and_is_not_repeated(
    serve: Serve, respond: Any, error: str, place: str
) -> None:
    """LOOP-25, LOOP-62."""
    server = serve(respond)
    with Anthropic(base_url=server.url, api_key="key", max_retries=2) as client:
        with pytest.raises(anthropic.APIStatusError) as caught:
            ask(client)
    message: str = cast("Any", caught.value.body)["error"]["message"]
    assert caught.value.status_code == 424
    assert message.startswith(error)
    assert f", {place}" in message
    assert message.endswith(". The test's script failed, not the API.")
    assert len(server.errors) == len(server.requests) == 1


@pytest.mark.parametrize("wrong", [None, "Hello!", [{"type": "text", "text": "Hello!"}]])
def test_a_responder_that_is_not_a_function_is_refused(serve: Serve, wrong: Any) -> None:
    """LOOP-64"""
    server = serve(plain)
    with pytest.raises(TypeError, match=r"respond must be a function .*: use `lambda body: …` for a fixed reply"):
        server.respond = wrong
    assert server.respond is plain
    if wrong is not None:
        with pytest.raises(TypeError, match="respond must be a function"):
            LoopbackServer(wrong)
