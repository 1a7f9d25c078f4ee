"""Values that tools return, as blocks in an MCP result."""

import base64
from decimal import Decimal
from typing import Any, cast

import pytest
from pydantic_ai.messages import BinaryContent, CachePoint, ImageUrl, TextContent, ToolReturn, UploadedFile

from cc_messages import LoopEndedError
from cc_model.tool_content import as_tool_result

PIXEL = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (1).to_bytes(4, "big") * 2 + b"\x08\x02"
PNG = BinaryContent(PIXEL, media_type="image/png")
LINK = ImageUrl("https://example.com/a.png")
UNTYPED = ImageUrl("https://example.com/image?id=1")
FILE = UploadedFile("file_1", provider_name="anthropic")


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content}


@pytest.mark.parametrize(
    ("value", "blocks"),
    [
        (None, [text("null")]),
        ([], [text("")]),
        ("plain", [text("plain")]),
        ({"a": 1}, [text('{"a":1}')]),
        (ToolReturn("result", content="more"), [text("result"), text("more")]),
        (ToolReturn("result", content=[TextContent("more")]), [text("result"), text("more")]),
        (ToolReturn("result", content=["more", CachePoint()]), [text("result"), text("more")]),
        # A kind of content that only a newer pydantic-ai has.
        (ToolReturn("result", content=cast("Any", [Decimal("1.5")])), [text("result"), text("1.5")]),
        (PNG, [{"type": "image", "data": base64.b64encode(PIXEL).decode(), "mimeType": "image/png"}]),
        (BinaryContent(b"a,b", media_type="text/csv"), [text("a,b")]),
        (BinaryContent(b"<svg/>", media_type="image/svg+xml"), [text("<svg/>")]),
        (LINK, [{"type": "resource_link", "uri": LINK.url, "name": LINK.identifier, "mimeType": "image/png"}]),
        (UNTYPED, [{"type": "resource_link", "uri": UNTYPED.url, "name": UNTYPED.identifier}]),
        (FILE, [{"type": "resource_link", "uri": "file_1", "name": FILE.identifier}]),
    ],
)
def test_a_value_becomes_blocks_of_its_kind(value: Any, blocks: list[dict[str, Any]]) -> None:
    assert as_tool_result("tool", value) == {"content": blocks, "isError": False}


@pytest.mark.parametrize(
    "file",
    [BinaryContent(b"data", media_type=kind) for kind in ("image/png", "audio/mpeg", "application/pdf")]
    + [BinaryContent(b"\xff", media_type="text/plain")],
    ids=lambda file: file.media_type,
)
@pytest.mark.parametrize("is_beside", [False, True])
def test_a_file_that_claude_code_would_change_ends_the_request(file: BinaryContent, is_beside: bool) -> None:
    """Also beside a text."""
    value = ToolReturn("text", content=[file]) if is_beside else file
    with pytest.raises(LoopEndedError, match=f"'tool' returned {file.media_type}.*set_agent_toolsets"):
        as_tool_result("tool", value)
