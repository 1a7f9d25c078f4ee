"""Lines for the CLI's stdin: pure functions from content to stream-json frames.

Measured on CLI 2.1.327. With `client_composed` the CLI takes text literally: it reads no `@file` and runs no slash
command. With `shouldQuery: false` it appends a message without a query.
"""

import json
from typing import TypeAlias
from uuid import uuid4

from cc_types import JsonValue

__all__ = ["Content", "Frame", "assistant_frame", "frame_line", "is_command", "user_frame"]

Frame: TypeAlias = dict[str, JsonValue]
Content: TypeAlias = str | list[dict[str, JsonValue]]
"""A message's `content`, as in the Messages API."""


def frame_line(frame: Frame) -> str:
    """Return a frame as a line."""
    return json.dumps(frame) + "\n"


def user_frame(content: Content, *, ask: bool, verbatim: bool = True) -> Frame:
    """Return a user message, with `ask` to be answered by the model, with `verbatim` to be taken literally."""
    frame = _frame("user", {"role": "user", "content": _json(content)})
    if verbatim:
        frame["client_composed"] = True
    if not ask:
        frame["shouldQuery"] = False
    return frame


def is_command(content: Content) -> bool:
    """Return true if the CLI may treat a message as a command, unless it is sent with `verbatim`."""
    if not isinstance(content, str):
        texts = [block.get("text") for block in content if block.get("type") == "text"]
        content = str(texts[-1]) if texts else ""
    return content.lstrip().startswith("/")


def assistant_frame(content: Content, *, model: str, input_tokens: int = 0) -> Frame:
    """Return a past assistant message."""
    message: dict[str, JsonValue] = {
        "id": f"msg_{uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": _json([{"type": "text", "text": content}] if isinstance(content, str) else content),
        "stop_reason": "end_turn",
        "stop_sequence": None,
        # The CLI counts context by it; the real cost was counted when the model made the message.
        "usage": {"input_tokens": input_tokens, "output_tokens": 0},
    }
    return _frame("assistant", message)


def _frame(kind: str, message: dict[str, JsonValue]) -> Frame:
    return {"type": kind, "message": message, "parent_tool_use_id": None, "session_id": "default", "uuid": str(uuid4())}


def _json(content: Content) -> JsonValue:
    # A copy, for type checkers: lists are invariant.
    return content if isinstance(content, str) else [*content]
