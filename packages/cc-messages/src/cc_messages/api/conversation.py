"""Messages and content blocks of a conversation. Pure functions."""

from dataclasses import dataclass
from typing import TypeAlias

from cc_types import JsonValue

from .response import invalid

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
    """Return a block without cache breakpoints, also in nested blocks; tool data and tool schemas are unchanged."""
    kept = {name: item for name, item in block.items() if name != "cache_control"}
    for name in _NESTING:
        if isinstance(nested := kept.get(name), dict):
            kept[name] = without_cache_control(nested)
        elif isinstance(nested, list):
            kept[name] = [without_cache_control(item) if isinstance(item, dict) else item for item in nested]
    return kept
