"""How fast tools reach the real CLI over each transport: the bridge, and the SDK's in-process server.

    python scripts/bench/ipc_transports.py

This is what `cc_ipc.resolve_transport()` leans on when it prefers one. The CLI runs offline, against a scripted
API. Connect: from starting a client to the end of its first turn, without a tool call. Call: a turn with twenty calls,
one after another, less a turn without any, divided by twenty. Prints medians and ratios.
"""

import asyncio
import json
import statistics
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage, create_sdk_mcp_server, tool
from claude_agent_sdk.types import McpServerConfig

from cc_ipc import IPCSession, ToolSchema
from cc_loopback import LoopbackServer

STARTS = 10
TURNS = 4
CALLS = 20

SCHEMA: ToolSchema = {"name": "echo", "description": "Echo.", "input_schema": {"type": "object"}}

Message: TypeAlias = dict[str, Any]


async def echo(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return a short text."""
    return {"content": [{"type": "text", "text": json.dumps(arguments)}]}


@asynccontextmanager
async def over_bridge() -> AsyncGenerator[McpServerConfig]:
    """Give the entry of a bridge."""
    async with IPCSession({"echo": echo}, [SCHEMA]) as session:
        config = session.mcp_server_config()
        yield {"type": "stdio", "command": config["command"], "args": config["args"]}


@asynccontextmanager
async def in_process() -> AsyncGenerator[McpServerConfig]:
    """Give the entry of an in-process server."""
    yield create_sdk_mcp_server("t", tools=[tool("echo", "Echo.", {})(echo)])


TRANSPORTS = {"stdio": over_bridge, "sdk": in_process}


def respond(body: Message) -> str | list[Message]:
    """Call the tool as often as the last prompt says, and then be done."""
    last = next(message for message in reversed(body["messages"]) if message["role"] == "user")
    blocks: list[Message] = last["content"] if isinstance(last["content"], list) else []
    wanted = any("CALL" in str(block.get("text", "")) for block in blocks) or "CALL" in str(last["content"])
    if any(block["type"] == "tool_result" for block in blocks) or not wanted:
        return "done"
    now = time.monotonic_ns()
    return [
        {"type": "tool_use", "id": f"toolu_{now}_{number}", "name": "mcp__t__echo", "input": {}}
        for number in range(CALLS)
    ]


async def turn(client: ClaudeSDKClient, prompt: str) -> float:
    """Return the seconds that a turn takes."""
    start = time.perf_counter()
    await client.query(prompt)
    async for message in client.receive_response():
        if isinstance(message, ResultMessage) and message.is_error:
            raise RuntimeError(message.result)
    return time.perf_counter() - start


async def measure(client: ClaudeSDKClient, calls: list[float]) -> None:
    """Add the milliseconds of a call."""
    without, with_calls = await turn(client, "Hello."), await turn(client, "CALL")
    calls.append((with_calls - without) * 1_000 / CALLS)


async def main() -> None:
    """Measure both."""
    with LoopbackServer(respond) as api:

        def options(config: McpServerConfig) -> ClaudeAgentOptions:
            return ClaudeAgentOptions(
                tools=[],
                mcp_servers={"t": config},
                allowed_tools=["mcp__t__*"],
                permission_mode="dontAsk",
                setting_sources=[],
                strict_mcp_config=True,
                system_prompt="You are a test.",
                model="claude-sonnet-5",
                env=api.env(),
            )

        connects: dict[str, list[float]] = {name: [] for name in TRANSPORTS}
        calls: dict[str, list[float]] = {name: [] for name in TRANSPORTS}
        for _ in range(STARTS):  # in turns, so that a busy moment meets both
            for name, transport in TRANSPORTS.items():
                start = time.perf_counter()
                async with transport() as config, ClaudeSDKClient(options(config)) as client:
                    await turn(client, "Hello.")
                    connects[name].append((time.perf_counter() - start) * 1_000)
                    for _ in range(TURNS):
                        await measure(client, calls[name])
    print(f"Python {sys.version.split()[0]}")
    medians = {name: (statistics.median(connects[name]), statistics.median(calls[name])) for name in TRANSPORTS}
    for name, (connect, call) in medians.items():
        print(f"  {name:6} connect and first turn {connect:8.1f} ms   call {call:8.3f} ms")
    connect, call = (bridge / other for bridge, other in zip(medians["stdio"], medians["sdk"], strict=True))
    print(f"  stdio / sdk: connect {connect:.2f}, call {call:.2f}")


if __name__ == "__main__":
    asyncio.run(main())
