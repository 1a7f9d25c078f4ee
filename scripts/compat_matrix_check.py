"""Check the claude-agent-sdk of this interpreter, and print one JSON object. Started by compat_matrix.py.

The SDK is real, only its transport is scripted: it answers the handshake, and the prompt with an assistant message, a
message of an unknown type, and a result.
"""

import asyncio
import importlib.metadata
import inspect
import json
import logging
from collections.abc import AsyncIterator
from typing import Any, TypeAlias, cast

import claude_agent_sdk
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, Transport, query

from cc_convert import convert_sdk_messages_to_cli_response

Frame: TypeAlias = dict[str, Any]

ASSISTANT: Frame = {"type": "assistant", "message": {"model": "m", "content": [{"type": "text", "text": "Sunny."}]}}
UNKNOWN: Frame = {"type": "weather_event", "sky": "blue"}
MALFORMED: Frame = {"type": "assistant", "message": {}}
RESULT: Frame = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "duration_ms": 1,
    "duration_api_ms": 1,
    "num_turns": 1,
    "session_id": "s1",
    "result": "Sunny.",
    "total_cost_usd": 0.25,
    "usage": {"input_tokens": 3, "output_tokens": 4},
}
CONCURRENT = 200
TIMEOUT = 60


class ScriptedTransport(Transport):
    """A transport that answers the handshake, and the first prompt with the given frames."""

    def __init__(self, *frames: Frame) -> None:
        self._frames = frames
        self._queue: asyncio.Queue[Frame | None] = asyncio.Queue()

    async def connect(self) -> None:
        """Do nothing: there is no connection."""

    async def write(self, data: str) -> None:
        """Receive a line from the SDK."""
        for line in data.splitlines():
            frame = cast("Frame", json.loads(line))
            if frame["type"] == "control_request":
                response: Frame = {"subtype": "success", "request_id": frame["request_id"], "response": {}}
                self._queue.put_nowait({"type": "control_response", "response": response})
            elif frame["type"] == "user":
                for reply in (*self._frames, None):
                    self._queue.put_nowait(reply)

    async def _read(self) -> AsyncIterator[Frame]:
        while (frame := await self._queue.get()) is not None:
            yield frame

    def read_messages(self) -> AsyncIterator[Frame]:
        """Yield the scripted output of the CLI."""
        return self._read()

    async def close(self) -> None:
        """End the stream."""
        self._queue.put_nowait(None)

    def is_ready(self) -> bool:
        """Return `True`."""
        return True

    async def end_input(self) -> None:
        """Do nothing: there is no input to close."""


class Counter(logging.Handler):
    """Counts log records."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Count one record."""
        self.count += 1


async def prompt() -> AsyncIterator[Frame]:
    """Yield one user message; old versions would pass a string on the CLI's command line."""
    yield {"type": "user", "message": {"role": "user", "content": "What is the weather?"}}


async def through_query(*frames: Frame) -> list[object]:
    """Return all messages of one query."""
    messages = query(prompt=prompt(), transport=ScriptedTransport(*frames))
    async with asyncio.timeout(TIMEOUT):
        return [message async for message in messages]


async def through_client(*frames: Frame) -> list[object]:
    """Return all messages of one turn of a client."""
    options = ClaudeAgentOptions()
    if "transport" in inspect.signature(ClaudeSDKClient).parameters:
        client = ClaudeSDKClient(options, transport=ScriptedTransport(*frames))
    else:  # This version has no public parameter for it.
        return [None]
    messages: list[object] = []
    async with client, asyncio.timeout(TIMEOUT):
        await client.query("What is the weather?")
        messages += [message async for message in client.receive_response()]
    return messages


async def outcome(messages: object) -> str:
    """Return a caller's view: the result, or the error."""
    try:
        received = await cast("Any", messages)
    except Exception as error:
        return type(error).__name__
    if received == [None]:
        return "no way in"
    response = convert_sdk_messages_to_cli_response(received)
    return f"{response.result}{' and None' if None in received else ''}"


async def check() -> dict[str, object]:
    """Return all results, first as installed and then with the patch."""
    found: dict[str, object] = {"SDK": claude_agent_sdk.__version__, "mcp": importlib.metadata.version("mcp")}
    found["unknown type, as installed"] = await outcome(through_query(ASSISTANT, UNKNOWN, RESULT))

    import cc_compat

    counter = Counter()
    logging.getLogger("cc_compat").addHandler(counter)
    status = cc_compat.status()
    found["shield"] = "applied" if status.applied else f"not applied: {status.reason}"
    found["places"] = len(status.patched)
    found["query()"] = await outcome(through_query(ASSISTANT, UNKNOWN, RESULT))
    found["client"] = await outcome(through_client(ASSISTANT, UNKNOWN, RESULT))
    found["malformed message"] = await outcome(through_query(MALFORMED, RESULT))
    before = counter.count
    many = await asyncio.gather(*(outcome(through_query(ASSISTANT, UNKNOWN, RESULT)) for _ in range(CONCURRENT)))
    alike = many.count(str(found["query()"]))
    found["200 at once"] = f"{alike} results, {counter.count - before} warnings"
    return found


if __name__ == "__main__":
    print(json.dumps(asyncio.run(check())))
