"""Server connections: little time for a request's head, and a bound on connections without the token."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import uvicorn

from cc_messages import ClaudeCodeTransport
from cc_server import create_app
from cc_server.connections import limited_connections, serve_until_signal

WITH_TOKEN = b"GET /nothing HTTP/1.1\r\nhost: here\r\nx-api-key: the token\r\n\r\n"
WITHOUT = b"GET /nothing HTTP/1.1\r\nhost: here\r\n\r\n"
BOTH = b"content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"


@asynccontextmanager
async def served(head_seconds: float = 40, max_untrusted: int = 100) -> AsyncGenerator[int]:
    """Serve on loopback, without a process; yield the port."""
    app = create_app(ClaudeCodeTransport(), token="the token")
    protocol = limited_connections(head_seconds=head_seconds, max_untrusted=max_untrusted)
    config = uvicorn.Config(app, log_config=None, http=protocol, timeout_graceful_shutdown=1)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(config)
        # Without `serve()`, which would install signal handlers in this thread.
        serving = asyncio.ensure_future(server._serve([listener]))  # pyright: ignore[reportPrivateUsage]
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            await serving


async def connect(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", port)


async def read_head(reader: asyncio.StreamReader) -> bytes:
    """Read an answer, and return the head."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = head.partition(b"content-length: ")[2].partition(b"\r\n")[0]
    await reader.readexactly(int(length or b"0"))
    return head


async def test_an_unused_connection_outlives_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """MSG-80: proxies close one after 60 seconds at most; a server that closes it first can lose a request."""
    configs: list[uvicorn.Config] = []

    async def serve(server: uvicorn.Server, sockets: list[socket.socket]) -> None:
        configs.append(server.config)

    monkeypatch.setattr(uvicorn.Server, "serve", serve)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        await serve_until_signal(create_app(ClaudeCodeTransport(), token="the token"), listener, grace_seconds=1)
    assert configs[0].timeout_keep_alive > 60


@pytest.mark.deaths
@pytest.mark.parametrize(("is_second", "sent"), [(False, b""), (False, b"GET / HTTP/1.1\r\nx-a: "), (True, b"G")])
async def test_a_head_that_does_not_come_in_time_ends_the_connection(is_second: bool, sent: bytes) -> None:
    """MSG-80: also a second request's head."""
    async with asyncio.timeout(30), served(head_seconds=0.2) as port:
        reader, writer = await connect(port)
        if is_second:
            writer.write(WITH_TOKEN)
            assert (await read_head(reader)).startswith(b"HTTP/1.1 404")
        writer.write(sent)
        assert (await reader.read()).startswith(b"HTTP/1.1 408 Request Timeout\r\n")
        writer.close()


async def test_a_path_that_is_no_path_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    """MSG-80"""
    async with asyncio.timeout(30), served() as port:
        reader, writer = await connect(port)
        writer.write(WITH_TOKEN.replace(b"/nothing", b"/nothing?a#part"))
        assert (await read_head(reader)).startswith(b"HTTP/1.1 400")
        writer.close()
    assert not caplog.records


@pytest.mark.parametrize("rest", [b"x", b"x" * 6])
async def test_the_rest_of_a_refused_request_gets_no_answer_of_its_own(
    rest: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MSG-80: neither during nor after the body; the connection ends in time."""
    monkeypatch.setattr("cc_server.http_server._DRAIN_SECONDS", 0.01)
    async with asyncio.timeout(30), served(head_seconds=0.2) as port:
        reader, writer = await connect(port)
        writer.write(b"POST /v1/messages HTTP/1.1\r\nhost: here\r\ncontent-length: 10\r\n\r\nxxxx")
        assert (await read_head(reader)).startswith(b"HTTP/1.1 401")
        writer.write(rest)
        assert await reader.read() == b""
        writer.close()


async def test_of_connections_without_the_token_the_oldest_give_way() -> None:
    """MSG-80: connections with the token stay, and further clients with the token are served."""
    async with asyncio.timeout(30), served(max_untrusted=3) as port:
        trusted, writer = await connect(port)
        writer.write(WITH_TOKEN)
        assert (await read_head(trusted)).startswith(b"HTTP/1.1 404")
        first, second, *others = [await connect(port) for _ in range(5)]
        assert await first[0].read() == await second[0].read() == b""

        for reader, other in others:
            other.write(WITHOUT)
            assert (await read_head(reader)).startswith(b"HTTP/1.1 401")
        writer.write(WITH_TOKEN)
        assert (await read_head(trusted)).startswith(b"HTTP/1.1 404")
        for _, stream in (first, second, *others, (trusted, writer)):
            stream.close()


@pytest.mark.parametrize("token", [b"", b"x-api-key: the token\r\n"])
async def test_a_body_with_two_ends_is_refused_and_ends_the_connection(token: bytes) -> None:
    """MSG-81: the bytes after the request are not a request."""
    async with asyncio.timeout(30), served() as port:
        reader, writer = await connect(port)
        writer.write(b"POST /v1/messages HTTP/1.1\r\nhost: here\r\n" + token + BOTH + WITH_TOKEN)
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 400")
        assert b"not both" in answer
        assert answer.count(b"HTTP/1.1") == 1
        writer.close()
