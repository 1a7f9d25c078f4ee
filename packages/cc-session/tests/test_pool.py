"""Leases of real processes: their sessions, threads, and misuse. `pool_core/` tests their assignment."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from claude_agent_sdk import ClaudeAgentOptions, create_sdk_mcp_server, tool

from cc_loopback import JsonObject, LoopbackServer
from cc_session import PoolLimits, SessionBusyError, SessionPool, Timeouts
from cc_types import CLIConnectionError, CLINotFoundError

from .conftest import FakeCLI, all_raise, cancelled, echo, until

pytestmark = pytest.mark.usefixtures("echoes")

Processes = Callable[[], list[psutil.Process]]


# --- Contents of a lease ---


async def test_a_lease_gets_an_empty_conversation_in_a_process_that_runs_already(
    server: LoopbackServer, one_process: SessionPool
) -> None:
    """SES-06, SES-61, SES-62."""
    pids: list[int | None] = []
    for text in ("One.", "Two.", "Three."):
        async with one_process.lease() as session:
            pids.append(session.pid)
            assert (await session.run(text)).text == text
            assert (await session.run("And?")).text == "And?"
        turn = await one_process.run(text)
        assert turn.text == text
        assert turn.usage.input_tokens > 0

    assert len({*pids}) == 1
    assert [len(body["messages"]) for body in server.requests] == [1, 3, 1] * 3


# --- Limits of a lease ---


async def test_a_session_can_do_nothing_after_its_lease(server: LoopbackServer, one_process: SessionPool) -> None:
    """SES-67."""
    async with one_process.lease() as old:
        await old.run("Mine.")
    async with one_process.lease() as new:
        late = old.run("x"), old.add_user("x"), old.reset(), old.control("get_settings"), old.stream("x").__aenter__()
        await all_raise(CLIConnectionError, *late, match="The lease of this session has ended")
        await old.close()
        assert (old.state, old.pid, old.last_user_uuid) == ("dead", None, None)
        assert (await new.run("Yours.")).text == "Yours."
        assert len(server.requests[-1]["messages"]) == 1


TALKS_LATE = """
initialize()
cost = 0
for frame in frames():
    if frame["type"] == "user":
        cost += 0.5
        result(frame, result="Yes.", total_cost_usd=cost)
    elif frame["type"] == "control_request":
        if frame["request"]["subtype"] == "get_settings":
            send(type="system", subtype="late", session_id="s")
        answer(frame, response={"rewound": True})
"""


async def test_late_messages_and_figures_do_not_reach_the_next_lease(fake_cli: FakeCLI) -> None:
    """SES-62, SES-67."""
    async with SessionPool(fake_cli(TALKS_LATE), limits=PoolLimits(size=1, prewarm=0)) as pool:
        async with pool.lease() as old:
            await old.run("One.")
            await old.run("Two.")
            await old.control("get_settings")
            assert (old.turns, old.cost_usd, old.last_spent.cost_usd) == (2, 1.0, 0.5)
        async with pool.lease() as new:
            assert (new.turns, new.cost_usd, new.last_spent.cost_usd) == (0, 0.0, 0.0)
            turn = await new.run("Three.")
            assert [type(message).__name__ for message in turn.messages] == ["ResultMessage"]
            assert (turn.cost_usd, new.turns, new.cost_usd) == (0.5, 1, 0.5)
            assert (old.turns, old.cost_usd, old.last_spent.cost_usd) == (0, 0.0, 0.0)
        assert pool.stats().starts == 1


@pytest.mark.parametrize("is_cancelled", [True, False])
async def test_what_goes_on_when_a_lease_ends_is_broken_off_and_forgotten(
    server: LoopbackServer, one_process: SessionPool, slow_api: Any, is_cancelled: bool
) -> None:
    """SES-10, SES-62, SES-67: a waiting message must not come into another lease's conversation."""
    async with one_process.lease() as session:
        running = [asyncio.ensure_future(session.run("Slow."))]
        await slow_api.wait_for_prompt()
        if is_cancelled:
            await cancelled(running.pop())
            running = [asyncio.ensure_future(call) for call in (session.run("Late."), session.add_user("Late."))]
            await asyncio.sleep(0)
    server.respond = echo
    with anyio.fail_after(10):
        assert (await one_process.run("Quick.")).text == "Quick."
        await all_raise((CLIConnectionError, SessionBusyError) if is_cancelled else CLIConnectionError, *running)
    assert "Late." not in str(server.requests[-1])
    assert server.requests[-1]["messages"][0]["content"][0]["text"] == "Quick."


async def test_a_lease_cancelled_at_any_moment_is_given_back(one_process: SessionPool) -> None:
    """SES-75."""
    for step in range(0, 40, 2):
        task = asyncio.ensure_future(one_process.run("Hello."))
        await asyncio.sleep(step / 1000)
        task.cancel()
        await asyncio.wait({task})
    with anyio.fail_after(10):
        assert (await one_process.run("Still there?")).text == "Still there?"
    await until(lambda: one_process.stats().idle == 1)
    assert one_process.stats().waiting == 0


async def test_a_lease_says_why_a_process_cannot_be_started(tmp_path: Path) -> None:
    """SES-96: a program that has gone since, a folder of the lease, and a path of the pool's own options."""
    program = tmp_path / "no-such-claude"
    program.write_text("#!/bin/sh\n", "utf-8")
    program.chmod(0o700)
    async with SessionPool(ClaudeAgentOptions(cli_path=program), limits=PoolLimits(size=1, prewarm=0)) as pool:
        program.unlink()
        await all_raise(CLINotFoundError, pool.run("Hello."), pool.warm(1))
        with pytest.raises(CLIConnectionError, match="cwd="):
            await pool.run("Hello.", cwd=tmp_path / "nowhere")
        assert pool.stats().failed_starts == 3
    with pytest.raises(CLINotFoundError):
        SessionPool(ClaudeAgentOptions(cli_path=tmp_path / "another"))


# --- Threads and event loops ---


async def test_run_sync_works_beside_a_running_loop(server: LoopbackServer, shared_pool: SessionPool) -> None:
    """SES-76, ARCH-17: as in a notebook; it blocks that loop, and nothing else."""
    assert shared_pool.run_sync("Hello.").text == "Hello."


@pytest.mark.worlds
async def test_run_sync_where_it_would_wait_for_itself_says_so(
    server: LoopbackServer, options: ClaudeAgentOptions
) -> None:
    """SES-74: tools run on the loop that drives the processes; `run()` can be awaited there.

    SES-102: also if the pool's only process waits for the tool.
    """

    @tool("ask", "Ask.", {})
    async def ask(_arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            pool.run_sync("Hello.")
        except RuntimeError as error:
            turn = await pool.run("Hello.")
            return {"content": [{"type": "text", "text": f"{error} {turn.text}"}]}
        raise AssertionError

    def respond(body: JsonObject) -> str | list[JsonObject]:
        last = body["messages"][-1]["content"][-1]
        if last["type"] == "tool_result":
            return last["content"][0]["text"]
        return "Hello." if not body.get("tools") else [{"type": "tool_use", "name": "mcp__t__ask", "input": {}}]

    server.respond = respond
    servers = {"t": create_sdk_mcp_server("t", tools=[ask])}
    async with SessionPool(options, limits=PoolLimits(size=1, prewarm=0), timeouts=Timeouts(queue=5)) as pool:
        turn = await pool.run("Go.", mcp_servers=servers, allowed_tools=["mcp__t__*"], max_turns=None)
    assert turn.text == "The thread that runs Claude Code's hooks and tools cannot wait for it; use `await` Hello."
