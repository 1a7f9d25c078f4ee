"""Validation of request bodies: the few fields that an answer needs, with problems in the API's words, field first.

Unknown fields pass.
"""

from collections.abc import Mapping
from typing import Any, cast

from .types import JsonObject, JsonValue


def problem_with(content: JsonObject | None, in_path: Mapping[str, JsonValue], *, counting: bool = False) -> str | None:
    """Return the first problem in the body for a message, or None.

    The fields `in_path` must not be in the body. If tokens are only counted, `max_tokens` is not required.
    """
    if content is None:
        return "The request body is not valid JSON: expected an object"
    for name in in_path:
        if name in content:
            return f"{name}: Extra inputs are not permitted"
    body: JsonObject = {**content, **in_path}
    for name in ("model", "messages") if counting else ("model", "max_tokens", "messages"):
        if name not in body:
            return f"{name}: Field required"
    if not isinstance(body["model"], str) or not body["model"]:
        return "model: Input should be a non-empty string"
    if not counting and (type(body["max_tokens"]) is not int or body["max_tokens"] < 1):
        return "max_tokens: Input should be an integer greater than or equal to 1"
    if not isinstance(body["messages"], list):
        return "messages: Input should be a list"
    if not body["messages"]:
        return "messages: at least one message is required"
    return _wrong_message(cast("list[object]", body["messages"]))


def _wrong_message(messages: list[object]) -> str | None:
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            return f"messages.{index}: Input should be an object"
        fields = cast("dict[str, Any]", message)
        if not isinstance(fields.get("role"), str):
            return f"messages.{index}.role: Field required"
        sets_effort = fields["role"] == "system" and "content" not in fields and fields.get("output_config")
        if not sets_effort and not isinstance(fields.get("content"), (str, list)):
            return f"messages.{index}.content: Field required"
    return None
