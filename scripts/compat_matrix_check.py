"""Check the claude-agent-sdk of this interpreter, and print one JSON object. Started by compat_matrix.py.

The SDK is real, only its transport is scripted: it answers the handshake, and the prompt with an assistant message, a
message of an unknown type, and a result.
"""

import asyncio
import importlib.metadata
import inspect
import json
import logging
from collections.abc import AsyncIterator, Awaitable
from logging.handlers import QueueHandler
from queue import SimpleQueue
from typing import Any, TypeAlias

import claude_agent_sdk
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, Transport, query

from cc_convert import convert_sdk_messages_to_cli_response

Frame: TypeAlias = dict[str, Any]

ASSISTANT: Frame = {"type": "assistant", "message": {"model": "m", "content": [{"type": "text", "text": "Sunny."}]}}
UNKNOWN: Frame = {"type": "weather_event", "sky": "blue"}
MALFORMED: Frame = {"type": "assistant", "message": {}}
RESULT: Frame = {
    "type": "result", "subtype": "success", "is_error": False, "duration_ms": 1, "duration_api_ms": 1, "num_turns": 1,
    "session_id": "s1", "result": "Sunny.", "total_cost_usd": 0.25, "usage": {"input_tokens": 3, "output_tokens": 4},
}  # fmt: skip
CONCURRENT = 200
SECONDS = 60


class ScriptedTransport(Transport):
    """A transport that answers the handshake, and the first prompt with the given frames."""

    def __init__(self, *frames: Frame) -> None:
        self._frames = frames
        self._queue: asyncio.Queue[Frame | None] = asyncio.Queue()

    async def connect(self) -> None:
        """Do nothing: there is no connection."""

    async def write(self, data: str) -> None:
        """Receive lines from the SDK."""
        for frame in map(json.loads, data.splitlines()):
            if frame["type"] == "control_request":
                response: Frame = {"subtype": "success", "request_id": frame["request_id"], "response": {}}
                self._queue.put_nowait({"type": "control_response", "response": response})
            elif frame["type"] == "user":
                for reply in (*self._frames, None):
                    self._queue.put_nowait(reply)

    async def read_messages(self) -> AsyncIterator[Frame]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Yield the scripted output of the CLI."""
        while (frame := await self._queue.get()) is not None:
            yield frame

    async def close(self) -> None:
        """End the stream."""
        self._queue.put_nowait(None)

    def is_ready(self) -> bool:
        """Return `True`."""
        return True

    async def end_input(self) -> None:
        """Do nothing: there is no input to close."""


async def prompt() -> AsyncIterator[Frame]:
    """Yield one user message; old versions would pass a string on the CLI's command line."""
    yield {"type": "user", "message": {"role": "user", "content": "What is the weather?"}}


async def through_query(*frames: Frame) -> list[object]:
    """Return all messages of one query."""
    return [message async for message in query(prompt=prompt(), transport=ScriptedTransport(*frames))]


async def through_client(*frames: Frame) -> list[object]:
    """Return all messages of one turn of a client."""
    if "transport" not in inspect.signature(ClaudeSDKClient).parameters:
        return [None]
    messages: list[object] = []
    async with ClaudeSDKClient(ClaudeAgentOptions(), transport=ScriptedTransport(*frames)) as client:
        await client.query("What is the weather?")
        messages += [message async for message in client.receive_response()]
    return messages


async def outcome(messages: Awaitable[list[object]]) -> str:
    """Return a caller's view: the result, or the error."""
    try:
        received: list[Any] = await asyncio.wait_for(messages, SECONDS)
    except Exception as error:
        return type(error).__name__
    if received == [None]:
        return "no way in"
    return f"{convert_sdk_messages_to_cli_response(received).result}{' and None' if None in received else ''}"


async def check() -> dict[str, object]:
    """Return all results, first as installed and then with the patch."""
    frames = (ASSISTANT, UNKNOWN, RESULT)
    before = await outcome(through_query(*frames))

    import cc_compat

    records: SimpleQueue[object] = SimpleQueue()
    logging.getLogger("cc_compat").addHandler(QueueHandler(records))
    status, one = cc_compat.status(), await outcome(through_query(*frames))
    row: dict[str, object] = {
        "SDK": claude_agent_sdk.__version__,
        "mcp": importlib.metadata.version("mcp"),
        "unknown type, as installed": before,
        "shield": "applied" if status.applied else f"not applied: {status.reason}",
        "places": len(status.patched),
        "query()": one,
        "client": await outcome(through_client(*frames)),
        "malformed message": await outcome(through_query(MALFORMED, RESULT)),
    }
    earlier = records.qsize()
    many = await asyncio.gather(*(outcome(through_query(*frames)) for _ in range(CONCURRENT)))
    return {**row, "200 at once": f"{many.count(one)} results, {records.qsize() - earlier} warnings"}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(check())))
