"""Replies from a responder, and reports about invalid replies."""

from typing import Any

import anthropic
import pytest
from anthropic import Anthropic

from cc_loopback import ReplyError
from cc_loopback.api.reply import make_message

from .conftest import BODY, Connect, Serve, ask

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
    server = serve(lambda body: [{"type": "text"}])
    with pytest.raises(anthropic.InternalServerError) as caught:
        ask(connect(server))
    assert "ReplyError: content[0] (text) needs 'text' as a str" in str(caught.value)
    assert [type(error) for error in server.errors] == [ReplyError]


@pytest.mark.parametrize("raised", [ValueError("no such city"), KeyboardInterrupt("no such city")])
def test_responder_that_raises_gives_a_500_without_a_retry(serve: Serve, raised: BaseException) -> None:
    """LOOP-25."""

    def respond(body: dict[str, Any]) -> str:
        raise raised

    server = serve(respond)
    with Anthropic(base_url=server.url, api_key="key", max_retries=2) as client:
        with pytest.raises(anthropic.InternalServerError) as caught:
            ask(client)
    body: Any = caught.value.body
    assert body["error"] == {"type": "api_error", "message": f"{type(raised).__name__}: no such city"}
    assert server.errors == [raised]
    assert len(server.requests) == 1
