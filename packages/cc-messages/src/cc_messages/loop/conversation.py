"""Messages as the CLI's history takes them. Pure functions."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from cc_types import JsonValue

from ..api.failure import invalid

__all__ = ["Block", "Message", "as_blocks", "merged", "without_cache_control"]

Block: TypeAlias = dict[str, JsonValue]

# Where blocks stand in blocks: in results and search results, and in the source of a document.
_NESTING = ("content", "source")


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: str
    content: tuple[Block, ...]

    def blocks(self) -> list[Block]:
        """The content without cache breakpoints: the CLI places its own, and the API allows four."""
        return [without_cache_control(block) for block in self.content]


def as_blocks(content: JsonValue, place: str) -> tuple[Block, ...]:
    """A message's content as blocks.

    Raises:
        APIError: It is neither a text nor a list of objects, or it is empty; `place` is named.
    """
    if isinstance(content, str):
        return ({"type": "text", "text": content},)
    if not isinstance(content, list):
        raise invalid(f"{place}: a string or a list of content blocks is required")
    if not content:
        raise invalid(f"{place}: must not be empty")
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
        if result and result[-1].role == message.role:
            message = Message(message.role, (*result.pop().content, *message.content))
        result.append(message)
    return tuple(result)


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
