"""Conversion from a tool result to MCP content: nothing is left out; values without an MCP form become text. Pure.

Claude Code would write a file into a folder and tell the model the path, and scale a large image. So a text file
becomes text, and another file, or such an image, ends the request.
"""

import base64
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from pydantic_ai.exceptions import UserError
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

from cc_messages import LoopEndedError, keeps_size
from cc_types import JsonValue

from .run_context import is_text_like_media_type

_Block = dict[str, JsonValue]


def as_tool_result(name: str, value: Any) -> dict[str, object]:
    """Return the MCP result for a tool that returned `value`, also for a `ToolReturn`.

    Texts and small images stay as they are, and any other value becomes JSON, in the form in which pydantic-ai shows it
    to a model.

    Raises:
        LoopEndedError: Claude Code would change a file.
    """
    extra: str | Sequence[UserContent] = ()
    if isinstance(value, ToolReturn):
        extra = value.content or ()
        value = value.return_value
    returned = ToolReturnPart(name, value, tool_call_id="").content_items(mode="str")
    items = (*returned, *([extra] if isinstance(extra, str) else extra))
    # A cache point marks the API content; an MCP result has no place for it.
    blocks = [_block(name, item) for item in items if not isinstance(item, CachePoint)]
    return {"content": blocks or [_text("")], "isError": False}


def error_result(message: str) -> dict[str, object]:
    """Return the MCP result for a tool that failed."""
    return {"content": [_text(message)], "isError": True}


def _block(name: str, item: object) -> _Block:
    match item:
        case str():
            return _text(item)
        case TextContent():
            return _text(item.content)
        case BinaryContent():
            return _file(name, item)
        case FileUrl():
            link: _Block = {"type": "resource_link", "uri": item.url, "name": item.identifier}
            # pydantic-ai reads it from the URL extension, which may be missing.
            with suppress(ValueError):
                link["mimeType"] = item.media_type
            return link
        case UploadedFile():
            return {"type": "resource_link", "uri": item.file_id, "name": item.identifier}
        case _:
            return _text(str(item))


def _text(text: str) -> _Block:
    return {"type": "text", "text": text}


def _file(name: str, file: BinaryContent) -> _Block:
    if is_text_like_media_type(file.media_type):
        with suppress(UnicodeDecodeError):
            return _text(file.data.decode())
    source: _Block = {"type": "base64", "media_type": file.media_type, "data": base64.b64encode(file.data).decode()}
    if not (file.is_image and keeps_size(source)):
        message = (
            f"The tool {name!r} returned {file.media_type}, which Claude Code's own loop does not carry unchanged. The "
            "agent's own loop, the default, does where the model takes it: call set_agent_toolsets(None)."
        )
        raise LoopEndedError(message=message, reason=UserError(message))
    return {"type": "image", "data": source["data"], "mimeType": file.media_type}
