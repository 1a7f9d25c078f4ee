"""The differences that Claude Code in between makes, each as what becomes of what `AnthropicModel` shows."""

from dataclasses import replace
from typing import Any

from both_ways import Seen


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
