"""Conversations that the CLI's history cannot hold, or would change, are refused with the place; others work."""

import asyncio
import base64
import json
from typing import Any

import pytest

from cc_messages.context import ClaudeCodeTools, RequestContext
from cc_messages.loop.request import LoopRequest, parse_request
from cc_types import APIError
from warm_clients.api_data import THINKING, text

NO_JPEG = base64.b64encode(b"\xff\xd8\xff and more ").decode()
GIF = base64.b64encode(b"GIF89a" + (2000).to_bytes(2, "little") + (1500).to_bytes(2, "little")).decode()


def png_header(width: int, height: int) -> str:
    data = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x08\x02"
    return base64.b64encode(data).decode()


PNG = png_header(1932, 1932)


def call(identity: str, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": identity, "name": "f", "input": {}, **fields}


def result(identity: str, content: Any = "ok", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": identity, "content": content, **fields}


def image(data: str, media_type: str = "image/png") -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


OWN = ClaudeCodeTools(tools=["Read"])


def parse_messages(messages: list[Any], **fields: Any) -> LoopRequest:
    async def beside() -> RequestContext:
        return RequestContext(None, OWN, None)

    body = json.dumps({"model": "m", "max_tokens": 9, "messages": messages, **fields}).encode()
    request = parse_request(body, "", asyncio.run(beside()))
    assert isinstance(request, LoopRequest)
    return request


def parse(*contents: Any) -> LoopRequest:
    """Parse contents, alternately the user's and the model's."""
    messages = [
        {"role": ("user", "assistant")[index % 2], "content": content} for index, content in enumerate(contents)
    ]
    return parse_messages(messages)


REDACTED = {"type": "redacted_thinking", "data": "c2Vj"}
SEARCH: dict[str, Any] = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
FOUND: dict[str, Any] = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
WEB_CITATION = {"type": "web_search_result_location", "url": "https://example.com"}

REFUSED: dict[str, tuple[list[Any], str]] = {
    "empty text": ([""], "messages.0.content.0.text: text content blocks must contain non-whitespace text"),
    "no text": ([[{"type": "text"}]], "messages.0.content.0.text: a string is required"),
    "blank text": ([[text("a"), text(" \n\u3000\ufeff")]], "messages.0.content.1.text: text content blocks"),
    "empty text of an answer": (["a", [text("x"), text("")], "b"], "messages.1.content.1.text: text content blocks"),
    "no image": ([[image("AAAA")]], "messages.0.content.0.source: "),
    "no base64": ([[image("§§§§")]], "messages.0.content.0.source: "),
    "other image": ([[image(PNG, "image/gif")]], "messages.0.content.0.source: "),
    "blank answer": (["a", "\n", "b"], "messages.1.content: "),
    "the CLI's blank": (["a", "(no content)", "b"], "messages.1.content: "),
    "thinking alone": (["a", [THINKING, REDACTED, text("\n\n")], "b"], "messages.1.content: "),
    "citation": (["a", [text("x", citations=[WEB_CITATION, {"type": "char_location"}])], "b"], ".0.citations: "),
    "caller": (["a", [call("t", caller={"type": "code"})], [result("t")]], "messages.1.content.0.caller: "),
    "toolset": (["a", [call("t", toolset_name="s")], [result("t")]], "messages.1.content.0.toolset_name: "),
    "changed image": ([[{**image(PNG), "transformations": {"crop": {}}}]], "messages.0.content.0.transformations: "),
    "advice": (["a", [{**SEARCH, "name": "advisor"}, {**FOUND, "type": "advisor_tool_result"}], "b"], "the advisor"),
    "tool reference": (
        ["a", [call("t")], [result("t", [{"type": "tool_reference"}])]],
        "messages.2.content.0.content: ",
    ),
    "server tool without result": (["a", [SEARCH, text("x")], "b"], "call without result: s"),
    "answer begun": (["a", "I think"], "messages.1.role: "),
    "no JPEG": ([[image(NO_JPEG, "image/jpeg")]], "messages.0.content.0.source: "),
    "wide image": ([[image(png_header(2001, 1))]], "messages.0.content.0.source: "),
    "high image": ([[image(png_header(1, 2001))]], "messages.0.content.0.source: "),
    "image in many patches": ([[image(png_header(1933, 1933))]], "messages.0.content.0.source: "),
    "no size": ([[image(png_header(0, 0))]], "messages.0.content.0.source: "),
    "large image": ([[image(png_header(9, 9) + "A" * 700_000)]], "messages.0.content.0.source: "),
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
def test_content_that_the_history_would_change_is_refused(contents: list[Any], message: str) -> None:
    """MSG-75"""
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
    "image": [[image(PNG), image(GIF, "image/gif")]],
    "image by address": [[{"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}]],
    "image in a result": ["a", [call("t")], [result("t", [image(PNG)], is_error=False)]],
    "direct call": ["a", [call("t", caller={"type": "direct"}, toolset_name=None)], [result("t")]],
    "no citations": ["a", [text("x", citations=None)], "b"],
    "unknown block": [[{"type": "hologram"}]],
    "ids of several messages": ["a", [call("t")], [result("t")], [call("u")], [result("u")]],
}


@pytest.mark.parametrize("contents", ACCEPTED.values(), ids=ACCEPTED)
def test_the_rest_is_carried_as_it_is(contents: list[Any]) -> None:
    """MSG-08"""
    sent = [text(content) if isinstance(content, str) else content for content in contents]
    assert [message.blocks() for message in parse(*contents).messages] == [
        content if isinstance(content, list) else [content] for content in sent
    ]


def test_a_system_message_is_a_tagged_text_of_the_user_s_turn() -> None:
    """MSG-75"""
    messages = [{"role": "user", "content": "a"}, {"role": "system", "content": "b"}]
    [message] = parse_messages(messages).messages
    assert (message.role, message.blocks()) == ("user", [text("a"), text("<system>\nb\n</system>")])


WRONG: list[tuple[list[Any], str]] = [
    (["Hello."], "messages.0: "),
    (
        [*[{"role": "user", "content": "a"}] * 3, {"role": "assistant", "content": "b"}],
        "messages.3.role: Claude Code does not continue an answer",
    ),
    ([{"content": "Hello."}], "messages.0.role: "),
    ([{"role": "tool", "content": "b"}], "messages.0.role: must be 'user', "),
    ([{"role": "system", "content": [{"type": "tool_addition"}]}], "messages.0.content: Claude Code's own"),
    ([{"role": "system", "content": [{"type": "text"}]}], "messages.0.content.0.text: a string is required"),
    ([{"role": "system", "content": " "}], "messages.0.content.0.text: text content blocks must"),
    ([{"role": "user"}], "messages.0.content: "),
    ([{"role": "user", "content": []}], "messages.0.content: must not be empty"),
    ([{"role": "user", "content": "a", "name": "Ann"}], "messages.0.name: "),
    ([{"role": "user", "content": ["a"]}], "messages.0.content.0: "),
]


@pytest.mark.parametrize(("messages", "place"), WRONG)
def test_a_message_that_is_none_is_refused_by_its_place(messages: list[Any], place: str) -> None:
    """MSG-75"""
    with pytest.raises(APIError, match=place):
        parse_messages(messages)


def test_cache_breakpoints_are_the_clis_to_place_but_data_stays() -> None:
    """MSG-76"""
    data = {"cache_control": "a field of the tool's"}
    mark = {"cache_control": {"type": "ephemeral"}}
    document = {"type": "document", "source": {"type": "content", "content": [text("d", **mark)]}}
    messages = [[{**document, **mark}], [call("t", input=data, **mark)], [result("t", [text("r", **mark)], **mark)]]
    assert [message.blocks() for message in parse(*messages).messages] == [
        [{**document, "source": {"type": "content", "content": [text("d")]}}],
        [call("t", input=data)],
        [result("t", [text("r")])],
    ]
