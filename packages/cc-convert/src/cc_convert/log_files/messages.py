"""Scan messages in memory, from the SDK or stream-json, like a log."""

from collections.abc import Iterable, Mapping
from typing import cast

from ..messages.shapes import is_assistant, is_json_object, is_result, result_fields
from .collector import Collector
from .fields import Record
from .rows import FileScan

_IN_MEMORY = "<messages>"


def scan_messages(messages: Iterable[object]) -> FileScan:
    """Read messages in order, from any number of turns; other kinds of message are allowed."""
    collector = Collector(_IN_MEMORY)
    position = 0
    for position, message in enumerate(messages):
        record = _record(message)
        if record is not None:
            collector.take_whole(record, position)
    return collector.scan(size=0, offset=position, unfinished=False)


def _record(message: object) -> Record | None:
    """Return a message in stream-json's form."""
    if is_json_object(message):
        return message
    if is_result(message):
        return {"type": "result", **result_fields(message)}
    if is_assistant(message):
        names = ("session_id", "uuid", "parent_tool_use_id", "timestamp", "error")
        texts = {name: value for name in names if isinstance(value := getattr(message, name, None), str)}
        return {"type": "assistant", "message": _body(message), **texts}
    data = getattr(message, "data", None)
    if isinstance(data, Mapping):
        return {"type": "system", **cast("Record", data)}
    event = getattr(message, "event", None)
    if isinstance(event, Mapping):
        thread = getattr(message, "parent_tool_use_id", None)
        return {"type": "stream_event", "event": event, "parent_tool_use_id": thread}
    return None


def _body(message: object) -> Record:
    content = cast("object", getattr(message, "content", None))
    blocks = cast("list[object]", content) if isinstance(content, list | tuple) else []
    return {
        "id": getattr(message, "message_id", None),
        "model": getattr(message, "model", None),
        "stop_reason": None,
        "usage": getattr(message, "usage", None),
        "content": [_block(block) for block in blocks],
    }


def _block(block: object) -> Record:
    if is_json_object(block):
        return block
    # Only tool calls have a name and an input.
    if hasattr(block, "name") and hasattr(block, "input"):
        return {"type": "tool_use", "id": getattr(block, "id", ""), "name": getattr(block, "name", "")}
    return {}
