"""Messages as values that can be compared: what a process holds, and what a request carries.

Two messages are equal when the API would read the same in both: a text is a list of one text block, a null is a field
that is not there, a call by the model itself need not say so, and cache breakpoints do not count. Pure functions.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from cc_types import JsonValue

from .failure import invalid

__all__ = ["Block", "Held", "Message", "as_blocks", "merged", "shared_prefix", "without_cache_control"]

Block: TypeAlias = dict[str, JsonValue]

# Where blocks stand in blocks: in results and search results, and in the source of a document.
_NESTING = ("content", "source")


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation; equal if role and meaning are."""

    role: str
    content: tuple[Block, ...] = field(compare=False)
    output_config: JsonValue = field(default=None, compare=False)
    """What a system message sets for the answers from there on, which is not content."""
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        said = [*map(_canonical, self.content), *([] if self.output_config is None else [self.output_config])]
        canonical = json.dumps(said, sort_keys=True, separators=(",", ":"))
        object.__setattr__(self, "digest", hashlib.sha256(canonical.encode()).hexdigest())

    @property
    def answers_tools(self) -> bool:
        """Whether it carries tool results."""
        return any(block.get("type") == "tool_result" for block in self.content)

    @property
    def calls_tools(self) -> bool:
        """Whether it waits for tool results."""
        return any(block.get("type") == "tool_use" for block in self.content)

    def blocks(self) -> list[Block]:
        """The content as it is to be sent, without cache breakpoints."""
        return [without_cache_control(block) for block in self.content]


@dataclass(frozen=True, slots=True)
class Held:
    """A message in a process."""

    message: Message
    uuid: str
    """The CLI's name for it, or for its first part."""
    is_cut: bool
    """Whether the CLI can drop it together with all that follows, and nothing else: a cut never splits a tool call."""


def as_blocks(content: JsonValue, place: str) -> tuple[Block, ...]:
    """A message's content as blocks.

    Raises:
        APIError: It is neither a text nor a list of objects; `place` is named.
    """
    if isinstance(content, str):
        return ({"type": "text", "text": content},)
    if not isinstance(content, list):
        raise invalid(f"{place}: a string or a list of content blocks is required")
    blocks: list[Block] = []
    for index, block in enumerate(content):
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            raise invalid(f"{place}.{index}: an object with a type is required")
        blocks.append(block)
    return tuple(blocks)


def merged(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Join neighbours of one role into one message, as the API reads them; the CLI would add line breaks."""
    result: list[Message] = []
    for message in messages:
        if result and _belong_together(result[-1], message):
            message = Message(message.role, (*result.pop().content, *message.content))
        result.append(message)
    return tuple(result)


def shared_prefix(held: Sequence[Held], wanted: Sequence[Message]) -> int:
    """How many messages both begin with."""
    count = 0
    for mine, theirs in zip(held, wanted, strict=False):
        if mine.message != theirs:
            break
        count += 1
    return count


def without_cache_control(block: Block) -> Block:
    """A block without its cache breakpoint, and without those of the blocks in it.

    What is data to a tool or its schema stays as it is, whatever its fields are called.
    """
    bare = {name: item for name, item in block.items() if name != "cache_control"}
    for name in _NESTING:
        match bare.get(name):
            case dict() as inner:
                bare[name] = without_cache_control(inner)
            case list() as items:
                bare[name] = [without_cache_control(item) if isinstance(item, dict) else item for item in items]
            case _:
                pass
    return bare


def _belong_together(one: Message, other: Message) -> bool:
    return one.role == other.role and one.output_config is None and other.output_config is None


def _canonical(value: JsonValue) -> JsonValue:
    match value:
        case dict():
            fields = {name: item for name, item in value.items() if name != "cache_control" and item is not None}
            if fields.get("type") == "tool_result" and isinstance(text := fields.get("content"), str):
                fields["content"] = [{"type": "text", "text": text}]
            if fields.get("caller") == {"type": "direct"}:
                del fields["caller"]
            # In what the model gave to a tool a null is a null.
            return {name: item if name == "input" else _canonical(item) for name, item in fields.items()}
        case list():
            return [_canonical(item) for item in value]
        case _:
            return value
