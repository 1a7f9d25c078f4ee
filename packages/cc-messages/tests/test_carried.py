"""What the API refuses, and Claude Code would repair, is refused in the words of the API; all else is carried."""

import base64
import json
from typing import Any

import pytest

from cc_messages.request import MessagesRequest, parse_request
from cc_types import APIError

JPEG = base64.b64encode(b"\xff\xd8\xff and more ").decode()


def png_header(width: int, height: int) -> str:
    data = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + width.to_bytes(4, "big") + height.to_bytes(4, "big")
    return base64.b64encode(data).decode()


PNG = png_header(2000, 2000)


def text(value: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": value, **fields}


def call(identity: str, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": identity, "name": "f", "input": {}, **fields}


def result(identity: str, content: Any = "ok", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": identity, "content": content, **fields}


def image(data: str, media_type: str = "image/png") -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def parse(*contents: Any) -> MessagesRequest:
    """Contents of the user's and the model's messages in turn."""
    messages = [
        {"role": ("user", "assistant")[index % 2], "content": content} for index, content in enumerate(contents)
    ]
    return parse_request(json.dumps({"model": "m", "max_tokens": 9, "messages": messages}).encode())


THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
REDACTED = {"type": "redacted_thinking", "data": "c2Vj"}
SEARCH: dict[str, Any] = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
FOUND: dict[str, Any] = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
WEB_CITATION = {"type": "web_search_result_location", "url": "https://example.com"}

REFUSED: dict[str, tuple[list[Any], str]] = {
    "empty text": ([""], "messages.0.content.0.text: text content blocks must contain non-whitespace text"),
    "no text": ([[{"type": "text"}]], "messages.0.content.0.text: a string is required"),
    "blank text": ([[text("a"), text(" \n\u3000\ufeff")]], "messages.0.content.1.text: text content blocks"),
    "empty text of an answer": (["a", [text("x"), text("")], "b"], "messages.1.content.1.text: text content blocks"),
    "no image": ([[image("AAAA")]], "messages.0.content.0.source.data: "),
    "no base64": ([[image("§§§§")]], "messages.0.content.0.source.data: "),
    "other image": ([[image(PNG, "image/gif")]], "messages.0.content.0.source.media_type: the image is image/png"),
    "image in an error": (
        ["a", [call("t")], [result("t", [text("x"), image(PNG)], is_error=True)]],
        'messages.2.content.0.content.1: all content must be type "text" if "is_error" is true',
    ),
    "call without result": (
        ["a", [call("t")], "b"],
        "`tool_use` ids were found without `tool_result` blocks immediately after: t",
    ),
    "one of two results": (["a", [call("t"), call("u")], [result("t")]], "immediately after: u"),
    "result without call": (["a", "x", [result("t")]], "unexpected `tool_use_id` found in `tool_result` blocks: t"),
    "result first of all": ([[result("t")]], "unexpected `tool_use_id` found in `tool_result` blocks: t"),
    "two results of one call": (["a", [call("t")], [result("t"), result("t")]], "must have a single result"),
    "one id twice": (
        ["a", [call("t")], [result("t")], [call("t")], [result("t")]],
        "`tool_use` ids must be unique, but 't'",
    ),
}


@pytest.mark.parametrize(("contents", "message"), REFUSED.values(), ids=REFUSED)
def test_what_would_arrive_otherwise_is_refused(contents: list[Any], message: str) -> None:
    """MSG-09."""
    with pytest.raises(APIError) as caught:
        parse(*contents)
    assert caught.value.status == 400
    assert message in caught.value.message


ACCEPTED: dict[str, list[Any]] = {
    "text before results": ["a", [call("t")], [text("first"), result("t"), text("then")]],
    "results in another order": ["a", [call("t"), call("u")], [result("u"), result("t")]],
    "blank text beside other text of an answer": ["a", [text("\n\n"), text("x")], "b"],
    "thinking before a call": ["a", [THINKING, call("t")], [result("t")]],
    "search": ["a", [SEARCH, FOUND, text("x", citations=[WEB_CITATION])], "b"],
    "image": [[image(PNG)]],
    "image by address": [[{"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}]],
    "image in a result": ["a", [call("t")], [result("t", [image(PNG)], is_error=False)]],
    "direct call": ["a", [call("t", caller={"type": "direct"})], [result("t")]],
    "no citations": ["a", [text("x", citations=None)], "b"],
    "unknown block": [[{"type": "hologram"}]],
    "ids of several messages": ["a", [call("t")], [result("t")], [call("u")], [result("u")]],
}


@pytest.mark.parametrize("contents", ACCEPTED.values(), ids=ACCEPTED)
def test_what_arrives_as_it_is_stays_in_the_history(contents: list[Any]) -> None:
    """MSG-08."""
    assert not parse(*contents).is_verbatim


VERBATIM: dict[str, list[Any]] = {
    "blank answer": ["a", "\n", "b"],
    "the CLI's blank": ["a", "(no content)", "b"],
    "thinking alone": ["a", [THINKING, REDACTED, text("\n\n")], "b"],
    "citation": ["a", [text("x", citations=[WEB_CITATION, {"type": "char_location"}])], "b"],
    "caller": ["a", [call("t", caller={"type": "code"})], [result("t")]],
    "tool reference": ["a", [call("t")], [result("t", [{"type": "tool_reference", "tool_name": "f"}])]],
    "server tool without result": ["a", [SEARCH, text("x")], "b"],
    "answer begun": ["a", "I think"],
    "JPEG": [[image(JPEG, "image/jpeg")]],
    "wide image": [[image(png_header(2001, 1))]],
    "high image": [[image(png_header(1, 2001))]],
    "no size": [[image(png_header(0, 0))]],
    "large image": [[image(png_header(9, 9) + "A" * 700_000)]],
}


@pytest.mark.parametrize("contents", VERBATIM.values(), ids=VERBATIM)
def test_what_the_history_would_change_goes_past_it(contents: list[Any]) -> None:
    """MSG-08, MSG-66."""
    request = parse(*contents)
    assert request.is_verbatim
    assert len(json.loads(request.parameters)["messages"]) == len(contents)


def test_thinking_alone_passes_beside_another_message_of_the_model() -> None:
    messages: list[Any] = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": [THINKING]},
        {"role": "assistant", "content": "x"},
        {"role": "user", "content": "b"},
    ]
    request = parse_request(json.dumps({"model": "m", "max_tokens": 9, "messages": messages}).encode())
    assert [message.role for message in request.messages] == ["user", "assistant", "user"]
