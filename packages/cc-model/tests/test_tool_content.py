"""Values that tools return, as blocks in an MCP result."""

import base64
from decimal import Decimal
from typing import Any, cast

import pytest
from pydantic_ai.messages import BinaryContent, CachePoint, ImageUrl, TextContent, ToolReturn, UploadedFile

from cc_model.tool_content import as_tool_result

DATA = b"data"
ENCODED = base64.b64encode(DATA).decode()
PNG, MP3, PDF = (BinaryContent(DATA, media_type=kind) for kind in ("image/png", "audio/mpeg", "application/pdf"))
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
        (PNG, [{"type": "image", "data": ENCODED, "mimeType": "image/png"}]),
        (MP3, [{"type": "audio", "data": ENCODED, "mimeType": "audio/mpeg"}]),
        (
            PDF,
            [
                {
                    "type": "resource",
                    "resource": {
                        "uri": f"file:///{PDF.identifier}",
                        "blob": ENCODED,
                        "mimeType": "application/pdf",
                    },
                }
            ],
        ),
        (LINK, [{"type": "resource_link", "uri": LINK.url, "name": LINK.identifier, "mimeType": "image/png"}]),
        (UNTYPED, [{"type": "resource_link", "uri": UNTYPED.url, "name": UNTYPED.identifier}]),
        (FILE, [{"type": "resource_link", "uri": "file_1", "name": FILE.identifier}]),
    ],
)
def test_a_value_becomes_blocks_of_its_kind(value: Any, blocks: list[dict[str, Any]]) -> None:
    assert as_tool_result("tool", value) == {"content": blocks, "isError": False}
