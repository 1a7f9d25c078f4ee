"""A turn's tool calls, by their ids from the model.

Calls and messages come from the CLI on different ways, so a call from an abandoned turn can arrive in a later turn. But
a turn's messages have only the ids of its own calls. Lives on the background loop.
"""

import asyncio
from contextlib import suppress

from claude_agent_sdk import AssistantMessage, Message, StreamEvent, ToolUseBlock

__all__ = ["TurnCalls"]

# The CLI writes a call's message before it makes the call; another pipe or a busy machine can delay it.
_BEHIND_SECONDS = 5.0


class TurnCalls:
    """Ids of a turn's tool calls, including its sub-agents' calls."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._news = asyncio.Event()

    def note(self, message: Message) -> None:
        """Record the calls in a message."""
        match message:
            case StreamEvent(
                event={"type": "content_block_start", "content_block": {"type": "tool_use", "id": str(call)}}
            ):
                self._ids.add(call)
            case AssistantMessage(content=blocks):
                self._ids.update(block.id for block in blocks if isinstance(block, ToolUseBlock))
            case _:
                return
        self._news.set()

    async def has(self, call_id: str | None) -> bool:
        """Return true if a call belongs to the turn, or if an old CLI does not send the id; wait for its message."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_BEHIND_SECONDS):
                while call_id is not None and call_id not in self._ids:
                    self._news.clear()
                    await self._news.wait()
        return call_id is None or call_id in self._ids
