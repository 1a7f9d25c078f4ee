"""A pool that many threads and event loops use."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, create_sdk_mcp_server, tool

from cc_loopback import JsonObject, LoopbackServer
from cc_session import Session, SessionPool

pytestmark = pytest.mark.usefixtures("echoes")


def test_a_pool_is_used_from_many_threads_at_once_also_in_loops_of_their_own(
    server: LoopbackServer, shared_pool: SessionPool
) -> None:
    """SES-74, SES-76, SES-F12: each gets its own answer."""

    async def lease(text: str) -> str:
        async with shared_pool.lease() as session:
            return (await session.run(text)).text

    def in_a_loop(text: str) -> str:
        return asyncio.run(lease(text))

    prompts = [f"Prompt {number}" for number in range(40)]
    with ThreadPoolExecutor(20) as threads:
        assert [turn.text for turn in threads.map(shared_pool.run_sync, prompts)] == prompts
        assert [*threads.map(in_a_loop, prompts[:18])] == prompts[:18]


async def test_run_sync_works_beside_a_running_loop(server: LoopbackServer, shared_pool: SessionPool) -> None:
    """SES-76, ARCH-17: as in a notebook; it blocks that loop, and nothing else."""
    assert shared_pool.run_sync("Hello.").text == "Hello."


async def test_run_sync_where_it_would_wait_for_itself_says_so(
    server: LoopbackServer, options: ClaudeAgentOptions, shared_pool: SessionPool
) -> None:
    """SES-74: tools run on the loop that drives the processes; `run()` can be awaited there."""

    @tool("ask", "Ask.", {})
    async def ask(_arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            shared_pool.run_sync("Hello.")
        except RuntimeError as error:
            turn = await shared_pool.run("Hello.")
            return {"content": [{"type": "text", "text": f"{error} {turn.text}"}]}
        raise AssertionError

    def respond(body: JsonObject) -> str | list[JsonObject]:
        last = body["messages"][-1]["content"][-1]
        if last["type"] == "tool_result":
            return last["content"][0]["text"]
        return "Hello." if not body.get("tools") else [{"type": "tool_use", "name": "mcp__t__ask", "input": {}}]

    server.respond = respond
    tools = replace(
        options,
        mcp_servers={"t": create_sdk_mcp_server("t", tools=[ask])},
        allowed_tools=["mcp__t__*"],
        max_turns=None,
    )
    async with await Session.open(tools) as session:
        turn = await session.run("Go.")
    assert turn.text == "The thread that runs Claude Code's hooks and tools cannot wait for it; use `await` Hello."
