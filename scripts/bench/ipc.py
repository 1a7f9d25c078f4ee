"""Measure cc-ipc, each figure in comparison with a floor from the same run.

Ready (IPC-P-70): from spawning a bridge to the answer to `tools/list`, compared with an empty server without libraries
and a bridge on the `mcp` library's own server. Round trip (IPC-P-71): 1 KB through `IPCClient` and `IPCServer`,
and through a bridge, compared with a bare asyncio echo with the same codec. Large (IPC-P-72): a result with 5 MB from
the handler to an MCP client, compared with a bare echo.
"""

import asyncio
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from cc_ipc import IPCClient, IPCServer, IPCSession, ToolHandler, ToolSchema

from .harness import Bound, Effort, Figure, Group, Suite, alternated, quantile, ratios_of_neighbours, rotated

if TYPE_CHECKING:
    from cc_types import JsonValue

SPAWNS = 40
ROUND_TRIPS = 4_000
LARGE = 12
SPAWNS_PER_SLOW_ONE = 5

BRIDGE, EMPTY, LIBRARY = "cc-ipc's bridge", "empty server of the standard library", "server on the mcp library"
DIRECT, THROUGH = "cc-ipc: IPCClient, IPCServer", "cc-ipc: MCP client, bridge, handler"
ECHO = "bare asyncio echo, same codec"

LIST_TOOLS = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'
SCHEMAS: list[ToolSchema] = [{"name": "tool", "description": "A tool.", "input_schema": {"type": "object"}}]

EMPTY_SERVER = """
import json, sys
for line in sys.stdin:
    print(json.dumps({"jsonrpc": "2.0", "id": json.loads(line)["id"], "result": {"tools": []}}), flush=True)
"""

# A bridge on the official library: the same list, and nothing else.
MCP_SERVER = """
import anyio, mcp_types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

async def list_tools(context, params):
    return mcp_types.ListToolsResult(tools=[mcp_types.Tool(name="tool", input_schema={"type": "object"})])

async def call_tool(context, params):
    raise NotImplementedError

async def main():
    server = Server("bridge", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())

anyio.run(main)
"""

# The `mcp` library answers `tools/list` only after a handshake, or, in the current version, with an envelope.
ENVELOPE: dict[str, object] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
LIST_TOOLS_IN_ENVELOPE = (
    json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": ENVELOPE}}).encode() + b"\n"
)


def ready_time(command: list[str], request: bytes) -> float:
    start = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        stdin, stdout = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
        stdin.write(request)
        stdin.flush()
        answer = json.loads(stdout.readline())
        taken = (time.perf_counter() - start) * 1_000
        stdin.close()
    if "tools" not in answer["result"]:
        raise RuntimeError(f"no list of tools: {answer}")
    return taken


async def measure_ready(effort: Effort) -> list[Figure]:
    """Compare how three servers start, in alternation, so that a busy moment affects all."""
    spawns = effort.times(SPAWNS)
    async with IPCSession({}, SCHEMAS) as session:
        servers: dict[str, tuple[list[str], bytes, int]] = {
            BRIDGE: (session.command, LIST_TOOLS, 1),
            EMPTY: ([sys.executable, "-P", "-c", EMPTY_SERVER], LIST_TOOLS, 1),
            LIBRARY: ([sys.executable, "-P", "-c", MCP_SERVER], LIST_TOOLS_IN_ENVELOPE, SPAWNS_PER_SLOW_ONE),
        }
        taken: dict[str, list[float]] = {name: [] for name in servers}
        for turn in range(spawns):
            for name in rotated(list(servers), turn):
                command, request, rarely = servers[name]
                if turn % rarely == 0:
                    taken[name].append(await asyncio.to_thread(ready_time, command, request))
    more = Group("Server on the mcp library, in multiples of the bridge", "times")
    return [
        *Group("Ready: spawn to the answer of tools/list").figures(taken, EMPTY, {BRIDGE: Bound(40.0)}),
        more.figure(LIBRARY, ratios_of_neighbours(taken[LIBRARY], taken[BRIDGE]), Bound(10.0, least=True)),
    ]


@contextlib.asynccontextmanager
async def bare_echo(folder: Path, message: object) -> AsyncGenerator[Callable[[], Awaitable[object]]]:
    """Yield a function that sends a message to a bare echo, which decodes and encodes it, and returns the answer."""
    if sys.platform == "win32":
        raise NotImplementedError("needs POSIX")

    def send(writer: StreamWriter, message: object) -> None:
        payload = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
        writer.write(len(payload).to_bytes(4, "big") + payload)

    async def receive(reader: StreamReader) -> Any:
        return json.loads(await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big")))

    async def echo(reader: StreamReader, writer: StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                send(writer, await receive(reader))
        writer.close()

    async with await asyncio.start_unix_server(echo, folder / "echo"):
        reader, writer = await asyncio.open_unix_connection(folder / "echo")

        async def exchange() -> object:
            send(writer, message)
            return await receive(reader)

        yield exchange
        writer.close()
        await writer.wait_closed()


@contextlib.asynccontextmanager
async def bridged(folder: Path, tool: ToolHandler) -> AsyncGenerator[Callable[[dict[str, object]], Awaitable[object]]]:
    """Yield a function that calls a tool through a bridge, as an MCP client does."""
    async with IPCSession({"tool": tool}, SCHEMAS, folder=folder) as session:
        bridge = await asyncio.create_subprocess_exec(*session.command, stdin=PIPE, stdout=PIPE, limit=1 << 24)
        stdin, stdout = cast("StreamWriter", bridge.stdin), cast("StreamReader", bridge.stdout)

        async def call(arguments: dict[str, object]) -> object:
            call = {"method": "tools/call", "params": {"name": "tool", "arguments": arguments}}
            stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, **call}).encode() + b"\n")
            return json.loads(await stdout.readline())["result"]

        yield call
        stdin.close()
        await bridge.wait()


async def measure_round_trip(folder: Path, effort: Effort) -> list[Figure]:
    arguments: dict[str, JsonValue] = {"text": "a" * 1_000}
    request = {"method": "call_tool", "params": {"name": "tool", "arguments": arguments}}
    count = effort.times(ROUND_TRIPS, 20)

    async def tool(arguments: dict[str, object]) -> dict[str, object]:
        return {"content": [{"type": "text", "text": arguments["text"]}]}

    async with (
        bare_echo(folder, request) as exchange,
        IPCServer(folder / "server", {"tool": tool}),
        IPCClient(folder / "server") as client,
        bridged(folder, tool) as call,
    ):
        times = await alternated(
            {ECHO: exchange, DIRECT: lambda: client.call_tool("tool", arguments), THROUGH: lambda: call({**arguments})},
            count,
            count // 10,
        )
    group = Group("Round trip of 1 KB, client and server in one event loop")
    slowest = Group("Round trip of 1 KB, 99th percentile")
    return [
        *group.figures(times, ECHO, {DIRECT: Bound(0.3)}),
        slowest.figure(DIRECT, [quantile(times[DIRECT], 0.99)], Bound(1.0)),
        slowest.figure(THROUGH, [quantile(times[THROUGH], 0.99)]),
    ]


async def measure_large(folder: Path, effort: Effort, kind: str, result: dict[str, object]) -> list[Figure]:
    """Compare a large result from the handler to the MCP client with a bare echo."""

    async def tool(arguments: dict[str, object]) -> dict[str, object]:
        return result

    async with bare_echo(folder, result) as exchange, bridged(folder, tool) as call:
        times = await alternated({ECHO: exchange, THROUGH: lambda: call({})}, effort.times(LARGE), 1)
    return Group(f"Round trip of 5 MB, {kind}").figures(times, ECHO, {THROUGH: Bound(2.0, of="ratio")})


async def measure(effort: Effort) -> list[Figure]:
    # A record takes 42 bytes as JSON.
    records: list[object] = [{"id": number, "name": f"name {number}", "ok": True} for number in range(5_000_000 // 42)]
    small: dict[str, object] = {"content": [{"type": "text", "text": "ok"}], "structuredContent": {"records": records}}
    with tempfile.TemporaryDirectory(prefix="ipc") as name:
        folder = Path(name)
        return [
            *await measure_ready(effort),
            *await measure_round_trip(folder, effort),
            *await measure_large(folder, effort, "one text", {"content": [{"type": "text", "text": "a" * 5_000_000}]}),
            *await measure_large(folder, effort, "small values", small),
        ]


SUITE = Suite("ipc", "Tool calls across processes: a bridge's start, and round trips", measure)
