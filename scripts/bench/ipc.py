"""What cc-ipc costs, each figure beside its floor, measured in the same run.

    python scripts/bench/ipc.py

Ready (IPC-P-70): from spawning a bridge to its answer of `tools/list`, beside an empty server of the standard library
and a bridge built on the `mcp` library's own server. Round trip (IPC-P-71): 1 KB through `IPCClient` and `IPCServer`,
and through a bridge, beside a bare asyncio echo with the same codec. Large (IPC-P-72): a result of 5 MB from the
handler to an MCP client, beside a bare echo of it.

Prints medians and ratios; exits with 1 if a bound is missed. Milliseconds depend on the computer; ratios do not, much.
"""

import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from cc_ipc import IPCClient, IPCServer, IPCSession, ToolHandler, ToolSchema

if TYPE_CHECKING:
    from cc_types import JsonValue

SPAWNS = 40
ROUND_TRIPS = 4_000
LARGE = 12

MOST_READY_MS = 40.0
LEAST_TIMES_FASTER_THAN_MCP = 10.0
MOST_ROUND_TRIP_MS = 0.3
MOST_ROUND_TRIP_P99_MS = 1.0
MOST_TIMES_LARGE_ECHO = 2.0

LIST_TOOLS = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'
SCHEMAS: list[ToolSchema] = [{"name": "tool", "description": "A tool.", "input_schema": {"type": "object"}}]

EMPTY_SERVER = """
import json, sys
for line in sys.stdin:
    print(json.dumps({"jsonrpc": "2.0", "id": json.loads(line)["id"], "result": {"tools": []}}), flush=True)
"""

# The bridge as it would be with the official library: the same list, and no more.
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

# The `mcp` library answers a list after a handshake only, in its current version also with an envelope.
ENVELOPE: dict[str, object] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
LIST_TOOLS_IN_ENVELOPE = (
    json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": ENVELOPE}}).encode() + b"\n"
)


missed: list[str] = []


class Times:
    """Milliseconds of one thing that was done again and again."""

    def __init__(self, name: str, seconds: Iterable[float]) -> None:
        values = sorted(value * 1_000 for value in seconds)
        self.name = name
        self.median = statistics.median(values)
        self.p99 = values[int(len(values) * 0.99)]

    def show(self) -> None:
        """Print a line."""
        print(f"  {self.name:44} p50 {self.median:8.3f} ms   p99 {self.p99:8.3f} ms")


def bound(name: str, value: float, limit: float, *, least: bool = False) -> None:
    """Print a figure beside its bound, and remember it if it misses that."""
    kept = value >= limit if least else value <= limit
    print(f"  {name:44} {value:12.3f}      {'at least' if least else 'at most'} {limit:g}{'' if kept else '   MISSED'}")
    if not kept:
        missed.append(name)


def ready_time(command: list[str], request: bytes) -> float:
    """Return the seconds from spawning a server to its answer."""
    start = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        stdin, stdout = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
        stdin.write(request)
        stdin.flush()
        answer = json.loads(stdout.readline())
        seconds = time.perf_counter() - start
        stdin.close()
    if "tools" not in answer["result"]:
        raise RuntimeError(f"no list of tools: {answer}")
    return seconds


async def measure_ready() -> None:
    """Compare the starts of three servers, in turns, so that a busy moment meets them all."""
    async with IPCSession({}, SCHEMAS) as session:
        servers: dict[str, tuple[list[str], bytes, int]] = {
            "bridge": (session.command, LIST_TOOLS, SPAWNS),
            "floor: empty standard library server": ([sys.executable, "-P", "-c", EMPTY_SERVER], LIST_TOOLS, SPAWNS),
            "server on the mcp library": ([sys.executable, "-P", "-c", MCP_SERVER], LIST_TOOLS_IN_ENVELOPE, 8),
        }
        seconds: dict[str, list[float]] = {name: [] for name in servers}
        for turn in range(SPAWNS):
            for name, (command, request, turns) in servers.items():
                if turn < turns:
                    seconds[name].append(await asyncio.to_thread(ready_time, command, request))
    print("Ready: spawn to the answer of tools/list")
    bridge, floor, library = (Times(name, values) for name, values in seconds.items())
    for times in (bridge, floor, library):
        times.show()
    print(f"  {'bridge / floor':44} {bridge.median / floor.median:12.3f}")
    bound("bridge, ms", bridge.median, MOST_READY_MS)
    bound("mcp library / bridge", library.median / bridge.median, LEAST_TIMES_FASTER_THAN_MCP, least=True)


async def timed(action: Callable[[], Awaitable[object]], times: int) -> list[float]:
    """Return the seconds that each of some repetitions takes, after a few to warm up."""
    seconds: list[float] = []
    for number in range(times + times // 10):
        start = time.perf_counter()
        await action()
        if number >= times // 10:
            seconds.append(time.perf_counter() - start)
    return seconds


async def echo_json(reader: StreamReader, writer: StreamWriter) -> None:
    """Decode and encode every frame, and send it back: the least that a JSON server does."""
    with contextlib.suppress(asyncio.IncompleteReadError):
        while True:
            message = await receive(reader)
            send(writer, message)
    writer.close()


def send(writer: StreamWriter, message: object) -> None:
    """Write a frame."""
    payload = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
    writer.write(len(payload).to_bytes(4, "big") + payload)


async def receive(reader: StreamReader) -> Any:
    """Read a frame."""
    return json.loads(await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big")))


@contextlib.asynccontextmanager
async def bare_echo(folder: Path, message: object) -> AsyncGenerator[Callable[[], Awaitable[object]]]:
    """Give what sends a message to a bare echo and gets it back."""
    async with await asyncio.start_unix_server(echo_json, folder / "echo"):
        reader, writer = await asyncio.open_unix_connection(folder / "echo")

        async def exchange() -> object:
            send(writer, message)
            return await receive(reader)

        yield exchange
        writer.close()
        await writer.wait_closed()


@contextlib.asynccontextmanager
async def bridged(folder: Path, tool: ToolHandler) -> AsyncGenerator[Callable[[dict[str, object]], Awaitable[object]]]:
    """Give what calls a tool through a bridge, as an MCP client does."""
    async with IPCSession({"tool": tool}, SCHEMAS, folder=folder) as session:
        bridge = await asyncio.create_subprocess_exec(*session.command, stdin=PIPE, stdout=PIPE, limit=1 << 24)
        stdin, stdout = cast("StreamWriter", bridge.stdin), cast("StreamReader", bridge.stdout)

        async def call(arguments: dict[str, object]) -> object:
            request = {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": "tool", "arguments": arguments},
            }
            stdin.write(json.dumps(request).encode() + b"\n")
            return json.loads(await stdout.readline())["result"]

        yield call
        stdin.close()
        await bridge.wait()


async def measure_round_trip(folder: Path) -> None:
    """Compare 1 KB through client and server, through a bridge, and through a bare echo."""
    arguments: dict[str, JsonValue] = {"text": "a" * 1_000}
    request = {"method": "call_tool", "params": {"name": "tool", "arguments": arguments}}

    async def tool(arguments: dict[str, object]) -> dict[str, object]:
        return {"content": [{"type": "text", "text": arguments["text"]}]}

    async with bare_echo(folder, request) as exchange:
        floor = Times("floor: bare asyncio echo, same codec", await timed(exchange, ROUND_TRIPS))
    async with IPCServer(folder / "server", {"tool": tool}), IPCClient(folder / "server") as client:
        direct = Times("IPCClient, IPCServer", await timed(lambda: client.call_tool("tool", arguments), ROUND_TRIPS))
    async with bridged(folder, tool) as call:
        through = Times("MCP client, bridge, handler", await timed(lambda: call({**arguments}), ROUND_TRIPS // 4))
    print("\nRound trip: 1 KB there and back, client and server in one event loop")
    for times in (direct, floor, through):
        times.show()
    print(f"  {'IPCClient, IPCServer / floor':44} {direct.median / floor.median:12.3f}")
    bound("IPCClient, IPCServer, p50, ms", direct.median, MOST_ROUND_TRIP_MS)
    bound("IPCClient, IPCServer, p99, ms", direct.p99, MOST_ROUND_TRIP_P99_MS)


def records(size: int) -> list[object]:
    """Return small values that make so many bytes of JSON, roughly."""
    return [{"id": number, "name": f"name {number}", "ok": True} for number in range(size // 42)]


async def measure_large(folder: Path, kind: str, result: dict[str, object]) -> None:
    """Compare a large result from handler to MCP client, and a bare echo of it."""

    async def tool(arguments: dict[str, object]) -> dict[str, object]:
        return result

    async with bare_echo(folder, result) as exchange:
        floor = Times("floor: bare asyncio echo, same codec", await timed(exchange, LARGE))
    async with bridged(folder, tool) as call:
        ours = Times("handler, bridge, MCP client", await timed(lambda: call({}), LARGE))
    print(f"\nLarge: {len(json.dumps(result)) / 1e6:.1f} MB, {kind}")
    for times in (ours, floor):
        times.show()
    bound("handler, bridge, MCP client / floor", ours.median / floor.median, MOST_TIMES_LARGE_ECHO)


async def main() -> int:
    """Measure everything, and return the exit status."""
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} CPUs\n")
    await measure_ready()
    with tempfile.TemporaryDirectory(prefix="ipc") as name:
        folder = Path(name)
        await measure_round_trip(folder)
        await measure_large(folder, "one text", {"content": [{"type": "text", "text": "a" * 5_000_000}]})
        content: list[object] = [{"type": "text", "text": "ok"}]
        data: dict[str, object] = {"records": records(5_000_000)}
        await measure_large(folder, "small values", {"content": content, "structuredContent": data})
    if missed:
        print(f"\nMissed: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
