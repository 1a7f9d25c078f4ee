"""Conversion from a tool's result to MCP content: nothing is left out; values without an MCP form become text. Pure."""

import base64
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    CachePoint,
    FileUrl,
    TextContent,
    ToolReturn,
    ToolReturnPart,
    UploadedFile,
    UserContent,
)

from cc_types import JsonValue

_Block = dict[str, JsonValue]


def as_tool_result(name: str, value: Any) -> dict[str, object]:
    """Return the MCP result for a tool that returned `value`, also for a `ToolReturn`.

    Texts stay as they are, images, audio and other files keep their bytes, and any other value becomes JSON, in the
    form in which pydantic-ai shows it to a model.
    """
    extra: str | Sequence[UserContent] = ()
    if isinstance(value, ToolReturn):
        extra = value.content or ()
        value = value.return_value
    returned = ToolReturnPart(name, value, tool_call_id="").content_items(mode="str")
    items = (*returned, *([extra] if isinstance(extra, str) else extra))
    # A cache point marks the API's content; an MCP result has no place for it.
    blocks = [_block(item) for item in items if not isinstance(item, CachePoint)]
    return {"content": blocks or [_text("")], "isError": False}


def error_result(message: str) -> dict[str, object]:
    """Return the MCP result for a tool that failed."""
    return {"content": [_text(message)], "isError": True}


def _block(item: object) -> _Block:
    match item:
        case str():
            return _text(item)
        case TextContent():
            return _text(item.content)
        case BinaryContent():
            return _file(item)
        case FileUrl():
            link: _Block = {"type": "resource_link", "uri": item.url, "name": item.identifier}
            # pydantic-ai reads it from the URL's extension, which may be missing.
            with suppress(ValueError):
                link["mimeType"] = item.media_type
            return link
        case UploadedFile():
            return {"type": "resource_link", "uri": item.file_id, "name": item.identifier}
        case _:
            return _text(str(item))


def _text(text: str) -> _Block:
    return {"type": "text", "text": text}


def _file(file: BinaryContent) -> _Block:
    data = base64.b64encode(file.data).decode()
    if file.is_image or file.is_audio:
        return {"type": "image" if file.is_image else "audio", "data": data, "mimeType": file.media_type}
    resource: _Block = {"uri": f"file:///{file.identifier}", "blob": data, "mimeType": file.media_type}
    return {"type": "resource", "resource": resource}
