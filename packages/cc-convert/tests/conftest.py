"""Every scenario runs over the same turn in four forms: raw dicts, objects of the SDK, and two kinds of look-alike."""

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TypeAlias, cast

import pytest

Frame: TypeAlias = dict[str, object]
Form: TypeAlias = Callable[[Frame], object]
Classes: TypeAlias = Mapping[str, type]

LOGS = Path(__file__).parent / "logs"
BLOCKS = {
    "text": "TextBlock",
    "thinking": "ThinkingBlock",
    "tool_use": "ToolUseBlock",
    "tool_result": "ToolResultBlock",
}
FIELDS = {
    "TextBlock": ["text"],
    "ThinkingBlock": ["thinking", "signature"],
    "ToolUseBlock": ["id", "name", "input"],
    "ToolResultBlock": ["tool_use_id", "content", "is_error"],
    "DeferredToolUse": ["id", "name", "input"],
    "AssistantMessage": ["content", "model", "parent_tool_use_id"],
    "UserMessage": ["content"],
    "SystemMessage": ["subtype", "data"],
    "ResultMessage": [
        "subtype", "duration_ms", "duration_api_ms", "is_error", "num_turns", "session_id", "stop_reason",
        "total_cost_usd", "usage", "result", "structured_output", "model_usage", "permission_denials",
        "deferred_tool_use", "errors", "api_error_status", "uuid", "terminal_reason", "origin", "user_message_uuid",
        "user_message_uuids",
    ],
}  # fmt: skip


def _make(kind: type, values: Mapping[str, object]) -> object:
    fields = {field.name: field for field in dataclasses.fields(kind)}
    required = [name for name, field in fields.items() if field.default is dataclasses.MISSING]
    given = {name: value for name, value in values.items() if name in fields}
    return cast("object", kind(**(dict.fromkeys(required) | given)))


def _as_object(frame: Frame, classes: Classes) -> object:
    if frame["type"] == "result":
        deferred = cast("Frame | None", frame.get("deferred_tool_use"))
        values = frame | {"model_usage": frame.get("modelUsage")}
        values["deferred_tool_use"] = deferred and _make(classes["DeferredToolUse"], deferred)
        return _make(classes["ResultMessage"], values)
    if frame["type"] == "system":
        return _make(classes["SystemMessage"], frame | {"data": frame})
    message = cast("Frame", frame["message"])
    content = [
        _make(classes[BLOCKS[cast("str", block["type"])]], block) for block in cast("list[Frame]", message["content"])
    ]
    kind = "AssistantMessage" if frame["type"] == "assistant" else "UserMessage"
    return _make(classes[kind], message | frame | {"content": content})


def _of_the_sdk() -> Classes:
    return cast("Classes", vars(pytest.importorskip("claude_agent_sdk.types")))


def _with_slots() -> Classes:
    return {
        kind: dataclasses.make_dataclass(kind, [(name, object, None) for name in names], slots=True)
        for kind, names in FIELDS.items()
    }


def _namespace(frame: Frame) -> object:
    return SimpleNamespace(**cast("dict[str, object]", _plain_attributes(_as_object(frame, _with_slots()))))


def _plain_attributes(value: object) -> object:
    names = cast("Mapping[str, object]", getattr(value, "__dataclass_fields__", {}))
    return {name: getattr(value, name) for name in names}


@pytest.fixture(params=["dict", "sdk", "slots", "namespace"])
def form(request: pytest.FixtureRequest) -> Form:
    """Gives a stream-json frame one of the forms that conversion must not tell apart."""
    if request.param == "dict":
        return lambda frame: frame
    if request.param == "namespace":
        return _namespace
    classes = _of_the_sdk() if request.param == "sdk" else _with_slots()
    return lambda frame: _as_object(frame, classes)


@pytest.fixture(params=["sdk", "slots"], scope="session")
def as_object(request: pytest.FixtureRequest) -> Form:
    """Makes an object of a frame."""
    classes = _of_the_sdk() if request.param == "sdk" else _with_slots()
    return lambda frame: _as_object(frame, classes)


@pytest.fixture
def log() -> Callable[[str], list[Frame]]:
    """Reads a log that the CLI wrote."""
    return lambda name: [json.loads(line) for line in (LOGS / f"{name}.jsonl").read_text("utf-8").splitlines()]
