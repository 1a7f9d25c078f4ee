"""An API that stops sending: before the headers, after them, during an answer, or except for pings.

The user's text selects the moment: `never`, `headers`, `middle`, or `pings`. The rest of the answer follows.
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

from text_events import sse, text_events

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nrequest-id: req_1\r\nconnection: close\r\n\r\n"
_ANSWER = [_HEAD, *map(sse, text_events("Done."))]


@asynccontextmanager
async def silent_api(*, ping_seconds: float = 1.0, pings: int = 1_000_000) -> AsyncGenerator[str]:
    """Serve the API, and yield the URL; it is silent for the time of the pings, which it sends only if asked."""
    connections: set[asyncio.Task[Any] | None] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.add(asyncio.current_task())
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
            prompt = json.dumps(json.loads(await reader.readexactly(length))["messages"])
            sent = 0 if "never" in prompt else 1 if "headers" in prompt else 4
            writer.writelines(_ANSWER[:sent])
            for _ in range(pings):
                await writer.drain()
                await asyncio.sleep(ping_seconds)
                if "pings" in prompt:
                    writer.write(sse({"type": "ping"}))
            writer.writelines(_ANSWER[sent:])
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in connections:
            if task is not None:
                task.cancel()
        await asyncio.wait([task for task in connections if task is not None]) if connections else None
