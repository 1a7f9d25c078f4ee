"""Kinds of messages and access to their parts, for SDK objects and dicts from stream-json.

SDK objects are recognised by shape, never by import, so that reading a log needs no SDK.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, TypeGuard, cast

from cc_types import CLIResponse

# Types that need no further check; testing for them first halves the time for an SDK object.
_JSON_TYPES = frozenset({bool, dict, float, int, list, str, type(None)})


class AssistantMessageLike(Protocol):
    """An SDK assistant message: an object with content blocks."""

    @property
    def content(self) -> Sequence[object]:
        """The content blocks."""
        ...

    @property
    def model(self) -> str:
        """The model name, which a user's message does not have."""
        ...


def is_json_object(value: object) -> TypeGuard[dict[str, object]]:
    """Return true if a value is a JSON object."""
    return isinstance(value, dict)


def is_result(message: object) -> bool:
    """Return true if a message ends a turn."""
    if is_json_object(message):
        return message.get("type") == "result"
    return hasattr(message, "num_turns") and hasattr(message, "is_error")


def is_assistant(message: object) -> TypeGuard[AssistantMessageLike | Mapping[str, object]]:
    """Return true if a message is from the model."""
    if is_json_object(message):
        return message.get("type") == "assistant"
    return hasattr(message, "content") and hasattr(message, "model")


def is_from_subagent(message: AssistantMessageLike | Mapping[str, object]) -> bool:
    """Return true if a message is from a subagent."""
    name = "parent_tool_use_id"
    return isinstance(message.get(name) if is_json_object(message) else getattr(message, name, None), str)


def result_fields(message: object) -> dict[str, object]:
    """Return a result message's fields, under the CLI names."""
    if is_json_object(message):
        return message.copy()
    fields = _attributes(message)
    if "model_usage" in fields:
        fields["modelUsage"] = fields.pop("model_usage")
    return fields


def texts(message: AssistantMessageLike | Mapping[str, object]) -> Iterator[str]:
    """Yield an assistant message's text blocks, in order."""
    for block in _blocks(message):
        if is_json_object(block):
            text = block.get("text") if block.get("type") == "text" else None
        else:
            text = getattr(block, "text", None)
        if isinstance(text, str):
            yield text


def _attributes(message: object) -> dict[str, object]:
    # An SDK message is a dataclass and may have new fields; other objects are read by the known field names.
    names = cast("Mapping[str, object]", getattr(type(message), "__dataclass_fields__", CLIResponse.model_fields))
    values = {name: getattr(message, name) for name in names if hasattr(message, name)}
    for name, value in values.items():
        if type(value) not in _JSON_TYPES and dataclasses.is_dataclass(value) and not isinstance(value, type):
            values[name] = dataclasses.asdict(value)
    return values


def _blocks(message: AssistantMessageLike | Mapping[str, object]) -> Sequence[object]:
    if isinstance(message, Mapping):
        body = message.get("message")
        content = body.get("content") if is_json_object(body) else None
    else:
        content = message.content
    return cast("list[object]", content) if isinstance(content, list | tuple) else ()
