"""Valid and invalid results from handlers."""

import pytest

from cc_ipc.errors import InvalidToolResultError
from cc_ipc.messages import validate_result

TEXT = {"type": "text", "text": "a"}
BLOCKS = [
    TEXT,
    {"type": "image", "data": "AA==", "mimeType": "image/png", "annotations": {"priority": 1}},
    {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
    {"type": "resource", "resource": {"uri": "file:///a", "text": "a", "mimeType": "text/plain"}},
    {"type": "resource", "resource": {"uri": "file:///a", "blob": "AA=="}},
    {"type": "resource_link", "uri": "file:///a", "name": "a"},
]


def test_every_kind_of_content_is_kept_unchanged() -> None:
    """IPC-D-09, IPC-D-10: no part of a result is lost."""
    result = validate_result({"content": BLOCKS, "structuredContent": {"a": 1}, "_meta": {"b": 2}, "isError": False})
    assert result == {"content": BLOCKS, "structuredContent": {"a": 1}, "_meta": {"b": 2}, "isError": False}


def test_is_error_is_false_when_left_out_and_survives_in_both_spellings() -> None:
    """IPC-D-17, IPC-D-08."""
    assert validate_result({"content": [TEXT]}).get("isError") is False
    assert validate_result({"content": [TEXT], "isError": True}).get("isError") is True
    assert validate_result({"content": [TEXT], "is_error": True}) == {"content": [TEXT], "isError": True}


@pytest.mark.parametrize("content", [[], ()])
def test_no_content_becomes_one_empty_text(content: object) -> None:
    """IPC-P-16: `content` has at least one element."""
    assert validate_result({"content": content})["content"] == [{"type": "text", "text": ""}]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "it is a NoneType"),
        ("sunny", "it is a str"),
        ({}, "its 'content' is a NoneType"),
        ({"content": "sunny"}, "its 'content' is a str"),
        ({"content": ["sunny"]}, r"its content\[0\] is a str"),
        ({"content": [TEXT, {}]}, r"its content\[1\] has type None"),
        ({"content": [{"type": "video"}]}, "has type 'video', and MCP knows text, image"),
        ({"content": [{"type": ["text"]}]}, "has type"),
        ({"content": [{"type": "text"}]}, "lacks 'text'"),
        ({"content": [{"type": "image", "data": b"raw", "mimeType": "image/png"}]}, "lacks 'data'"),
        ({"content": [{"type": "audio", "data": "AA=="}]}, "lacks 'mimeType'"),
        ({"content": [{"type": "resource"}]}, r"content\[0\].resource is not an object"),
        ({"content": [{"type": "resource", "resource": {"text": "a"}}]}, "lacks 'uri'"),
        ({"content": [{"type": "resource", "resource": {"uri": "a"}}]}, "lacks 'blob'"),
        ({"content": [{"type": "resource", "resource": {"uri": "a", "text": 1}}]}, "lacks 'text'"),
        ({"content": [TEXT], "isError": "no"}, "its 'isError'"),
        ({"content": [TEXT], "structuredContent": [1]}, "its 'structuredContent'"),
    ],
)
def test_an_invalid_result_is_refused_and_the_message_names_the_field(value: object, reason: str) -> None:
    """IPC-P-21: an invalid part is reported, and never dropped silently."""
    with pytest.raises(InvalidToolResultError, match=reason):
        validate_result(value)
