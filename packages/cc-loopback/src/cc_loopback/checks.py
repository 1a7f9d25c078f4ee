"""What a request body must have before it is answered.

Knows the few fields without which nothing can be answered, and words problems as the API does, field first. It is no
schema of the Messages API: a field it does not know passes.
"""

from collections.abc import Mapping
from typing import Any, cast

from .types import JsonObject, JsonValue

_NOTHING: Mapping[str, JsonValue] = {}


def problem_with(
    given: JsonObject | None, in_path: Mapping[str, JsonValue] = _NOTHING, *, counting: bool = False
) -> str | None:
    """Return what is wrong with the body of a message request, or None.

    Args:
        given: The body, or None where it is no JSON object.
        in_path: The fields that stand in the path, and so must not stand in the body.
        counting: Whether tokens are only counted, for which no `max_tokens` is needed.
    """
    if given is None:
        return "The request body is not valid JSON: expected an object"
    for name in in_path:
        if name in given:
            return f"{name}: Extra inputs are not permitted"
    body: JsonObject = {**given, **in_path}
    required = ["model", "messages"] if counting else ["model", "max_tokens", "messages"]
    for name in required:
        if name not in body:
            return f"{name}: Field required"
    return _wrong_type(body, counting=counting) or _wrong_message(body["messages"])


def _wrong_type(body: JsonObject, *, counting: bool) -> str | None:
    if not isinstance(body["model"], str) or not body["model"]:
        return "model: Input should be a non-empty string"
    if not counting and (type(body["max_tokens"]) is not int or body["max_tokens"] < 1):
        return "max_tokens: Input should be an integer greater than or equal to 1"
    if not isinstance(body["messages"], list):
        return "messages: Input should be a list"
    if not body["messages"]:
        return "messages: at least one message is required"
    return None


def _wrong_message(messages: list[object]) -> str | None:
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            return f"messages.{index}: Input should be an object"
        fields = cast("dict[str, Any]", message)
        if not isinstance(fields.get("role"), str):
            return f"messages.{index}.role: Field required"
        if not isinstance(fields.get("content"), (str, list)):
            return f"messages.{index}.content: Field required"
    return None
