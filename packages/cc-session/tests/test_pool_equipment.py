"""Pools whose processes have a policy, hooks and MCP servers."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, PermissionResultAllow, PreToolUseHookInput, create_sdk_mcp_server, tool
from claude_agent_sdk.types import PermissionRuleValue, PermissionUpdate

from cc_loopback import JsonObject, LoopbackServer
from cc_session import HookResult, McpServer, Policy, PoolLimits, Rule, Session, SessionPool, hook
from cc_types import CLIConnectionError

from .conftest import all_raise


@tool("echo", "Echo.", {"text": str})
async def echo(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": f"Echo: {arguments['text']}"}]}


def call_once(body: JsonObject) -> str | list[JsonObject]:
    """Call the tool, and answer with the result."""
    # Where there are hooks, the process is not bare, and the CLI adds messages about the machine.
    last = [message for message in body["messages"] if message["role"] == "user"][-1]["content"][-1]
    if last["type"] == "tool_result":
        return json.dumps(last["content"])
    return [{"type": "tool_use", "id": "toolu_1", "name": "mcp__tools__echo", "input": {"text": last["text"]}}]


@pytest.fixture
def server(server: LoopbackServer) -> LoopbackServer:
    server.respond = call_once
    return server


@pytest.fixture
def options(options: ClaudeAgentOptions, tmp_path: Path) -> ClaudeAgentOptions:
    """Not in a private folder, whose name differs in each process."""
    return replace(options, cwd=tmp_path)


@pytest.fixture
def servers() -> Mapping[str, McpServer]:
    return {"tools": create_sdk_mcp_server("tools", tools=[echo])}


def bodies(server: LoopbackServer) -> list[JsonObject]:
    return [{name: value for name, value in body.items() if name != "metadata"} for body in server.requests]


@pytest.mark.worlds
async def test_a_process_with_policy_hooks_and_servers_is_reused_without_traces(
    server: LoopbackServer, options: ClaudeAgentOptions, servers: Mapping[str, McpServer]
) -> None:
    """SES-61, SES-62: also after calls that ran, and calls that were denied."""
    texts: list[str] = []

    @hook("PreToolUse")
    async def look(input: PreToolUseHookInput) -> HookResult:
        texts.append(input["tool_input"]["text"])
        return HookResult(context="Somebody is looking.")

    def is_bad(arguments: Mapping[str, object]) -> bool:
        return arguments.get("text") == "Bad."

    policy = Policy([Rule("mcp__tools__*", "allow"), Rule("mcp__tools__*", "deny", when=is_bad)])
    async with await Session.open(options, policy=policy, hooks=[look], mcp_servers=servers) as session:
        await session.run("Good.")
    fresh = bodies(server)

    async with SessionPool(
        options, limits=PoolLimits(size=1, prewarm=0), policy=policy, hooks=[look], mcp_servers=servers
    ) as pool:
        for _ in range(2):
            assert "Echo" not in (await pool.run("Bad.")).text
            server.requests.clear()
            assert "Echo: Good." in (await pool.run("Good.")).text
            assert bodies(server) == fresh
        assert pool.stats().starts == 1
    assert texts == ["Good.", "Bad.", "Good.", "Bad.", "Good."]


@pytest.mark.worlds
async def test_a_permission_that_is_granted_for_the_session_ends_with_the_lease(
    server: LoopbackServer, options: ClaudeAgentOptions, servers: Mapping[str, McpServer]
) -> None:
    """SES-52, SES-62."""
    texts: list[str] = []

    def ask(_tool: str, arguments: Mapping[str, object], _context: object) -> PermissionResultAllow:
        texts.append(str(arguments["text"]))
        rules = [PermissionRuleValue("mcp__tools__echo")]
        forever = PermissionUpdate(type="addRules", rules=rules, behavior="allow", destination="session")
        return PermissionResultAllow(updated_permissions=[forever])

    policy = Policy(default="ask", ask=ask)
    async with SessionPool(options, limits=PoolLimits(size=1, prewarm=0), policy=policy, mcp_servers=servers) as pool:
        for text in ("One.", "Two."):
            assert f"Echo: {text}" in (await pool.run(text)).text
        stats = pool.stats()
    assert texts == ["One.", "Two."]
    assert (stats.starts, {*stats.recycled}) == (2, {"changed"})


async def test_servers_that_a_lease_has_set_end_with_it(
    server: LoopbackServer, lone_pool: SessionPool, servers: Mapping[str, McpServer]
) -> None:
    """SES-61, SES-62."""
    async with lone_pool.lease() as old:
        await old.set_mcp_servers(servers)
    async with lone_pool.lease() as session:
        assert await session.mcp_status() == []
        late = (old.set_mcp_servers(servers), old.toggle_mcp("tools", False), old.mcp_status(), old.wait_mcp())
        await all_raise(CLIConnectionError, *late, match="The lease of this session has ended")
        assert await session.mcp_status() == []


async def test_a_hook_runs_on_the_loop_of_the_turn_s_caller(
    server: LoopbackServer, options: ClaudeAgentOptions, servers: Mapping[str, McpServer]
) -> None:
    """SES-74: for any previous user, and any loop closed since then."""
    loops: list[asyncio.AbstractEventLoop] = []

    @hook("PreToolUse")
    async def note(_input: PreToolUseHookInput) -> HookResult:
        loops.append(asyncio.get_running_loop())
        return HookResult()

    mine: list[asyncio.AbstractEventLoop] = []

    async def call() -> None:
        mine.append(asyncio.get_running_loop())
        async with pool.lease() as session:
            await session.run("Hello.")
        await pool.run("Hello.")

    async with SessionPool(options, limits=PoolLimits(size=1, prewarm=0), hooks=[note], mcp_servers=servers) as pool:
        await asyncio.to_thread(asyncio.run, call())
        await call()
        assert pool.stats().starts == 1
    assert loops == [mine[0], mine[0], mine[1], mine[1]]
