"""Conversation messages and their content blocks. Pure functions."""

from dataclasses import dataclass
from typing import TypeAlias

from cc_types import JsonValue

from .failure import invalid

__all__ = ["Block", "HistoryMessage", "as_blocks", "without_cache_control"]

Block: TypeAlias = dict[str, JsonValue]

# Fields with blocks inside a block: results and search results, and a document's source.
_NESTING = ("content", "source")


@dataclass(frozen=True, slots=True)
class HistoryMessage:
    """A message in a conversation."""

    role: str
    content: tuple[Block, ...]

    def blocks(self) -> list[Block]:
        """Return the content without cache breakpoints: the CLI places its own, and the API allows four."""
        return [without_cache_control(block) for block in self.content]


def as_blocks(content: JsonValue, place: str) -> tuple[Block, ...]:
    """Return a message's content as blocks."""
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


def without_cache_control(block: Block) -> Block:
    """Return a block without cache breakpoints, also in nested blocks.

    Tool data and tool schemas are unchanged, whatever their field names.
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
