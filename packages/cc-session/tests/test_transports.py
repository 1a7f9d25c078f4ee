"""A session on a caller's transport behaves as on a process: here the CLI behind a shell, and
behind a socket."""

import asyncio
import json
import os
import signal
import sys
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import claude_agent_sdk
import psutil
import pytest
from claude_agent_sdk import ClaudeAgentOptions, Transport, create_sdk_mcp_server, tool
from typing_extensions import override

from cc_loopback import LoopbackServer
from cc_session import Session
from cc_types import ClaudeCodeError

from .conftest import all_raise

pytestmark = pytest.mark.worlds

if sys.platform == "win32":
    raise pytest.skip.Exception("needs POSIX", allow_module_level=True)

CLI = str(Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude")
ARGUMENTS = [
    "--output-format", "stream-json", "--input-format", "stream-json", "--verbose", "--include-partial-messages",
    "--bare", "--no-session-persistence", "--tools", "", "--setting-sources=", "--permission-mode", "dontAsk",
    "--model", "claude-sonnet-5", "--system-prompt", "You are a test.", "--allowedTools", "mcp__town",
    "--mcp-config", '{"mcpServers": {"session": {"type": "sdk", "name": "session"}}}',
]  # fmt: skip

# Gives the first client a CLI, with the socket as stdin and stdout.
RELAY = """
import socket, subprocess, sys
with socket.create_server(("127.0.0.1", 0)) as server:
    print(server.getsockname()[1], flush=True)
    connection, _ = server.accept()
process = subprocess.Popen(sys.argv[1:], stdin=connection, stdout=connection)
print(process.pid, flush=True)
connection.close()
process.wait()
"""


class OverStreams(Transport):
    """JSON lines over a pair of asyncio streams."""

    pid = 0
    reader: StreamReader
    writer: StreamWriter

    def __init__(self, env: dict[str, str], folder: Path) -> None:
        self.env = {**os.environ, **env}
        self.folder = folder
        self.process: Process | None = None

    @override
    async def write(self, data: str) -> None:
        self.writer.write(data.encode())
        await self.writer.drain()

    @override
    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        while line := await self.reader.readline():
            yield json.loads(line)

    @override
    async def end_input(self) -> None:
        self.writer.write_eof()

    @override
    def is_ready(self) -> bool:
        return self.process is not None

    @override
    async def close(self) -> None:
        self.writer.close()
        if self.process is not None:
            try:
                async with asyncio.timeout(0.5):
                    await self.process.wait()
            except TimeoutError:
                os.kill(self.pid, signal.SIGKILL)
                await self.process.wait()


class OverShell(OverStreams):
    """Through a shell, as `ssh` and `docker exec` start their commands."""

    @override
    async def connect(self) -> None:
        command = ["/bin/sh", "-c", 'exec "$0" "$@"', CLI, *ARGUMENTS]
        self.process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, env=self.env, cwd=self.folder, limit=1 << 24
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.pid, self.writer, self.reader = self.process.pid, self.process.stdin, self.process.stdout


class OverSocket(OverStreams):
    """Through a TCP connection."""

    @override
    async def connect(self) -> None:
        command = [sys.executable, "-ISc", RELAY, CLI, *ARGUMENTS]
        self.process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, env=self.env, cwd=self.folder)
        assert self.process.stdout is not None
        port = int(await self.process.stdout.readline())
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
        self.pid = int(await self.process.stdout.readline())


@pytest.fixture(params=[OverShell, OverSocket])
def transport(request: pytest.FixtureRequest, options: ClaudeAgentOptions, tmp_path: Path) -> OverStreams:
    return request.param({**options.env, "CLAUDE_CODE_TMPDIR": str(tmp_path)}, tmp_path)


@tool("look_up", "Looks something up.", {})
async def look_up(_arguments: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": "Found."}]}


@pytest.fixture
async def session(transport: OverStreams, options: ClaudeAgentOptions) -> AsyncIterator[Session]:
    town = create_sdk_mcp_server("town", tools=[look_up])
    async with await Session.open(options, transport=transport, mcp_servers={"town": town}) as session:
        yield session
    with pytest.raises(psutil.NoSuchProcess):
        psutil.Process(transport.pid)


@pytest.mark.parametrize("is_busy", [False, True])
async def test_the_end_of_the_other_side(
    server: LoopbackServer, session: Session, transport: OverStreams, slow_api: Any, is_busy: bool
) -> None:
    """SES-19, SES-20: a transport that ends without a reason is an error all the same, and at once."""
    running = asyncio.ensure_future(session.run("Hello?")) if is_busy else None
    if running is not None:
        await slow_api.wait_for_prompt()
    os.kill(transport.pid, signal.SIGKILL)

    with anyio.fail_after(10):
        if running is not None:
            await all_raise(ClaudeCodeError, running)
        await all_raise(ClaudeCodeError, session.control("get_settings"), session.run("Hello?"))
    assert session.state == "dead"
