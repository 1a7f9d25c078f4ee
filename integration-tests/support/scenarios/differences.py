"""The differences that Claude Code in between makes, each as what becomes of what `AnthropicModel` shows."""

from dataclasses import replace
from itertools import groupby
from typing import Any, cast

from both_ways import Seen

from .scenario import Differ


def texts_before_calls(seen: Seen) -> Seen:
    """In an answer that is sent back, the CLI puts texts between calls before all calls."""
    bodies = [{**body, "messages": [_texts_first(message) for message in body["messages"]]} for body in seen.bodies]
    return replace(seen, bodies=bodies)


def _texts_first(message: dict[str, Any]) -> dict[str, Any]:
    if message["role"] != "assistant":
        return message
    return {**message, "content": sorted(message["content"], key=lambda block: block["type"] == "tool_use")}


def system_as_one_block(seen: Seen) -> Seen:
    """The CLI takes one system prompt, so several blocks arrive as its paragraphs."""
    bodies = [{**body, "system": _joined(body["system"])} for body in seen.bodies]
    return replace(seen, bodies=bodies)


def _joined(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": "\n\n".join(block["text"] for block in blocks)}]


def neighbours_as_one_message(seen: Seen) -> Seen:
    """The CLI makes one message of neighbours of one role, as the API does when it reads them."""
    bodies = [{**body, "messages": _merged(body["messages"])} for body in seen.bodies]
    return replace(seen, bodies=bodies)


def _merged(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    groups = groupby(messages, lambda message: message["role"])
    return [{"role": role, "content": [block for one in group for block in one["content"]]} for role, group in groups]


def integers_as_doubles(seen: Seen) -> Seen:
    """The CLI keeps the arguments of calls as JavaScript has numbers."""
    return replace(seen, bodies=[_doubled(body) for body in seen.bodies])


def _doubled(value: Any) -> Any:
    match value:
        case dict():
            return {name: _doubled(item) for name, item in cast("dict[str, Any]", value).items()}
        case list():
            return [_doubled(item) for item in cast("list[Any]", value)]
        case int() if abs(value) > 2**53:
            return int(float(value))
        case _:
            return value


def refused(why: str) -> Differ:
    """The API would refuse it, which the loopback API does not: the transport does, and says why."""

    def differ(seen: Seen) -> Seen:
        outcome = {"error": "ModelRequestRejectedError", "says": Containing(why)}
        return replace(seen, outcome=outcome, bodies=[])

    return differ


def in_its_own_name(seen: Seen) -> Seen:
    """Errors that name the model's class and the provider name ours."""
    says = seen.outcome["says"].replace("AnthropicModel", "ClaudeCodeModel").replace("'anthropic'", "'claude-code'")
    return replace(seen, outcome={**seen.outcome, "says": says})


class Containing(str):
    """A text that equals each one that contains it."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and str(self) in str(other)

    __hash__ = str.__hash__
