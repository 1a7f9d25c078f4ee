"""Measure both transports of tools to the real CLI: the bridge, and the SDK's in-process server.

The preference of `cc_ipc.resolve_transport()` is based on it. The CLI runs offline, against a scripted API. Connect:
from starting a client to the end of its first turn, without a tool call. Call: a turn with twenty calls, one after
another, minus a turn without any, divided by twenty.
"""

import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage, create_sdk_mcp_server, tool
from claude_agent_sdk.types import McpServerConfig

from cc_ipc import IPCSession, ToolSchema
from cc_loopback import LoopbackServer

from .harness import Effort, Figure, Group, Suite, rotated

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
    """Yield the configuration entry of a bridge."""
    async with IPCSession({"echo": echo}, [SCHEMA]) as session:
        config = session.mcp_server_config()
        yield {"type": "stdio", "command": config["command"], "args": config["args"]}


@asynccontextmanager
async def in_process() -> AsyncGenerator[McpServerConfig]:
    """Yield the configuration entry of an in-process server."""
    yield create_sdk_mcp_server("t", tools=[tool("echo", "Echo.", {})(echo)])


BRIDGE, SERVER = "cc-ipc's bridge (stdio)", "in-process server (sdk)"
TRANSPORTS = {BRIDGE: over_bridge, SERVER: in_process}


def respond(body: Message) -> str | list[Message]:
    """Call the tool as often as the last prompt says, then stop."""
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
    """Return the seconds of a turn."""
    start = time.perf_counter()
    await client.query(prompt)
    async for message in client.receive_response():
        if isinstance(message, ResultMessage) and message.is_error:
            raise RuntimeError(message.result)
    return time.perf_counter() - start


async def add_call(client: ClaudeSDKClient, calls: list[float]) -> None:
    """Record the milliseconds of a call."""
    without, with_calls = await turn(client, "Hello."), await turn(client, "CALL")
    calls.append((with_calls - without) * 1_000 / CALLS)


def options_with(config: McpServerConfig, api: LoopbackServer) -> ClaudeAgentOptions:
    """Return options with the tool and nothing else."""
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


async def measure(effort: Effort) -> list[Figure]:
    """Measure both in alternation."""
    connects: dict[str, list[float]] = {name: [] for name in TRANSPORTS}
    calls: dict[str, list[float]] = {name: [] for name in TRANSPORTS}
    with LoopbackServer(respond) as api:
        for number in range(effort.times(STARTS)):
            for name in rotated(list(TRANSPORTS), number):
                start = time.perf_counter()
                async with TRANSPORTS[name]() as config, ClaudeSDKClient(options_with(config, api)) as client:
                    await turn(client, "Hello.")
                    connects[name].append((time.perf_counter() - start) * 1_000)
                    for _ in range(effort.times(TURNS, 1)):
                        await add_call(client, calls[name])
    return [
        *Group("Connect and first turn, with a tool").figures(connects, SERVER),
        *Group("One call of a tool by the CLI").figures(calls, SERVER),
    ]


SUITE = Suite("transports", "Tools for the CLI's own loop: the bridge, and the SDK's in-process server", measure)
