"""An API that misbehaves in a chosen way: raw bytes over TCP, which no HTTP library would send."""

import asyncio
import ipaddress
import json
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from cryptography.x509 import IPAddress

from server_certificate import server_certificate
from text_events import USAGE, sse, text_events

__all__ = ["BEHAVIORS", "STATUSES", "Behavior", "MisbehavingAPI", "misbehaving", "status"]

Behave = Callable[[asyncio.StreamWriter], Awaitable[None]]

_TLS_HANDSHAKE = b"\x16"


START, BLOCK, DELTA, *_ENDS = [sse(event) for event in text_events("Hello.")]
WHOLE = b"".join([START, BLOCK, DELTA, *_ENDS])
PING = sse({"type": "ping"})
OVERLOADED = sse({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n"


def answer(code: int, body: bytes, *headers: str, kind: str = "application/json") -> bytes:
    """Return a complete answer."""
    lines = [f"HTTP/1.1 {code} Made up", f"content-type: {kind}", f"content-length: {len(body)}", "connection: close"]
    return "\r\n".join([*lines, *headers, "", ""]).encode() + body


def sends(*chunks: bytes, then_waits: bool = False) -> Behave:
    """Send chunks, and close the connection, or wait until the client closes it."""

    async def behave(writer: asyncio.StreamWriter) -> None:
        for chunk in chunks:
            writer.write(chunk)
            await writer.drain()
        if then_waits:
            await asyncio.get_running_loop().create_future()

    return behave


def repeats(first: bytes, chunk: bytes, seconds: float) -> Behave:
    """Send a chunk repeatedly without end."""

    async def behave(writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        while True:
            writer.write(chunk)
            await writer.drain()
            await asyncio.sleep(seconds)

    return behave


def drips(whole: bytes, seconds: float) -> Behave:
    """Send single bytes."""

    async def behave(writer: asyncio.StreamWriter) -> None:
        for byte in whole:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(seconds)

    return behave


@dataclass(frozen=True)
class Behavior:
    """A kind of misbehaviour."""

    name: str
    """For the documentation: the API …"""
    behave: Behave


def status(code: int, retry_after: int | None) -> Behavior:
    """Answer each request with an API error, and optionally with the seconds before a retry."""
    error = {"type": "error", "error": {"type": "made_up_error", "message": "Its message"}}
    headers = [] if retry_after is None else [f"retry-after: {retry_after}"]
    return Behavior(f"answers {code}", sends(answer(code, json.dumps(error).encode(), *headers)))


STATUSES = (
    *range(400, 419), *range(421, 427), 428, 429, 431, 451, 499,
    *range(500, 509), 510, 511, 520, 522, 524, 529, 599,
)  # fmt: skip

BEHAVIORS = (
    Behavior("never answers", sends(then_waits=True)),
    Behavior("sends the head of an answer, and no more", sends(HEAD + b"\r\n", then_waits=True)),
    Behavior("stops in the middle of a stream", sends(HEAD + b"\r\n", START, BLOCK, DELTA, then_waits=True)),
    Behavior("sends one byte a second", drips(HEAD + b"\r\n" + WHOLE, 1.0)),
    Behavior("sends pings only", repeats(HEAD + b"\r\n" + START, PING, 0.2)),
    Behavior("closes the connection without an answer", sends()),
    Behavior("closes the connection after the head", sends(HEAD + b"\r\n")),
    Behavior("closes the connection in the middle of a stream", sends(HEAD + b"\r\n", START, BLOCK, DELTA)),
    Behavior("leaves `message_stop` out", sends(HEAD + b"\r\n", WHOLE.removesuffix(sse({"type": "message_stop"})))),
    Behavior("sends an error event first", sends(HEAD + b"\r\n", OVERLOADED)),
    Behavior("sends an error event in the middle of a stream", sends(HEAD + b"\r\n", START, BLOCK, DELTA, OVERLOADED)),
    Behavior("sends events that are not JSON", sends(HEAD + b"\r\n", b"event: message_start\ndata: {no\n\n")),
    Behavior("sends events of unknown types only", sends(HEAD + b"\r\n", sse({"type": "made_up"}))),
    Behavior("sends an event that is a number", sends(HEAD + b"\r\n", b"event: message_start\ndata: 42\n\n", WHOLE)),
    Behavior("sends an event without a type", sends(HEAD + b"\r\n", START, b"event: ping\ndata: {}\n\n", BLOCK)),
    Behavior("sends `null` for the usage", sends(HEAD + b"\r\n", WHOLE.replace(json.dumps(USAGE).encode(), b"null"))),
    Behavior("begins with the second block", sends(HEAD + b"\r\n", WHOLE.replace(b'"index": 0', b'"index": 1'))),
    Behavior("leaves `message_start` out", sends(HEAD + b"\r\n", WHOLE.removeprefix(START))),
    Behavior("sends bytes that are not events", sends(HEAD + b"\r\n", bytes(range(256)) * 4)),
    Behavior("sends HTML with status 200", sends(answer(200, b"<html>Welcome!</html>", kind="text/html"))),
    Behavior("sends an empty body with status 200", sends(answer(200, b""))),
    Behavior("answers 204", sends(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")),
    Behavior("tells a length that is too long", sends(HEAD + b"content-length: 99999\r\n\r\n", START, BLOCK, DELTA)),
    Behavior("tells a length that is too short", sends(HEAD + b"content-length: 300\r\n\r\n", WHOLE)),
    Behavior("breaks the chunked encoding", sends(HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n" + START)),
    Behavior("says it is gzip and is not", sends(HEAD + b"content-encoding: gzip\r\n\r\n" + WHOLE)),
    Behavior("speaks no HTTP", sends(b"SSH-2.0-made_up\r\n")),
    Behavior("answers 100 and waits", sends(b"HTTP/1.1 100 Continue\r\n\r\n", then_waits=True)),
    Behavior("answers 103 and then right", sends(b"HTTP/1.1 103 Early Hints\r\n\r\n", HEAD + b"\r\n", WHOLE)),
    Behavior("redirects (301) to a page", sends(answer(301, b"", "location: /elsewhere"))),
    Behavior("redirects (307) to itself for ever", sends(answer(307, b"", "location: /v1/messages"))),
    Behavior("answers 500 with HTML", sends(answer(500, b"<html>Sorry!</html>", kind="text/html"))),
    Behavior("answers 500 with an empty body", sends(answer(500, b""))),
    Behavior("answers 400 with JSON that is no error", sends(answer(400, b'["no"]'))),
)


class MisbehavingAPI:
    """A server on loopback that answers each `POST /v1/messages` with the selected behaviour."""

    def __init__(self) -> None:
        self.behave: Behave = sends()
        self.url = ""
        self._serving: set[asyncio.Task[None]] = set()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection."""
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            head = await reader.readexactly(1)
            if head == _TLS_HANDSHAKE:
                writer.write(answer(400, b"This is no TLS."))
                return
            head += await reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length or b"0"))
            if head.startswith(b"POST /v1/messages"):
                await self._while_open(reader, writer)
            else:
                writer.write(answer(404, b"{}"))
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._serving.discard(task)
            with suppress(OSError):
                writer.close()

    async def _while_open(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behaving, leaving = asyncio.ensure_future(self.behave(writer)), asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({behaving, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            behaving.cancel()
            leaving.cancel()
            await asyncio.gather(behaving, leaving, return_exceptions=True)

    async def stop(self) -> None:
        """Close the connections that are still open."""
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)


@asynccontextmanager
async def misbehaving(*, has_certificate: bool = False) -> AsyncGenerator[MisbehavingAPI]:
    """Serve a misbehaving API, optionally over TLS with a self-signed certificate."""
    api = MisbehavingAPI()
    context = None
    if has_certificate:
        with tempfile.TemporaryDirectory() as folder:
            context, _ = server_certificate(Path(folder), IPAddress(ipaddress.ip_address("127.0.0.1")))
    server = await asyncio.start_server(api.answer, "127.0.0.1", 0, ssl=context)
    api.url = f"{'https' if context else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield api
    finally:
        server.close()
        await api.stop()
