"""The process that a lease gets."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, create_sdk_mcp_server
from typing_extensions import override

from cc_session import HookResult, Policy, Rule, SessionPool, Timeouts, hook
from cc_session.pool.core import Lease
from cc_session.pool.worker import Worker
from cc_types import CLIConnectionError

from .conftest import FULL, OLD_CLI, OPTIONS, Make, Starter, figures, launch, use

pytestmark = pytest.mark.timeout(10)


async def test_other_options_have_processes_of_their_own(make: Make) -> None:
    """SES-61, SES-54: a lease never runs under another lease's rules."""

    @hook("Stop")
    async def look(_input: Any) -> HookResult:
        return HookResult()

    strict = Policy([Rule("*", "deny", reason="Never.")])
    servers = {"tools": create_sdk_mcp_server("tools")}
    kinds: list[dict[str, Any]] = [
        {}, {"system_prompt": FULL}, {"cwd": "elsewhere"}, {"env": {"COLOUR": "red"}}, {"policy": strict},
        {"hooks": [look]}, {"mcp_servers": servers}, {"timeouts": Timeouts(control=1)},
        {"permission_mode": "plan"},
    ]  # fmt: skip
    pool = make(size=len(kinds))
    used = [await use(pool, **kind) for kind in [*kinds, *kinds]]
    assert [session.number for session in used] == [*range(len(kinds))] * 2
    assert used[1].launch.options.system_prompt == FULL
    assert used[4].launch.policy is strict
    assert used[5].launch.hooks == (look,)
    assert await use(pool, launch(replace(OPTIONS, cwd=Path("elsewhere")))) is used[2]
    assert figures(pool, "starts", "leases", "reuses") == (len(kinds), 2 * len(kinds) + 1, len(kinds) + 1)

    pool = make(size=1)
    for mode in ("plan", "default", "plan"):  # each takes the other's place
        await use(pool, permission_mode=mode)
    assert pool.stats().recycled == {"evicted": 2}


async def test_options_are_taken_as_they_were_when_the_lease_was_asked_for(make: Make, starter: Starter) -> None:
    pool = make()
    mine = ClaudeAgentOptions(env={})
    await use(pool, launch(mine))
    mine.env["COLOUR"] = "red"
    await use(pool, launch(mine))
    mine.env.pop("COLOUR")
    wanted = launch(mine)
    mine.system_prompt = "Too late."
    await use(pool, wanted)
    assert [session.launch.options.env for session in starter.sessions] == [{}, {"COLOUR": "red"}, {}]
    assert not any(session.launch.options.system_prompt for session in starter.sessions)


async def test_an_override_that_no_option_has_is_refused() -> None:
    with pytest.raises(TypeError, match="colour"):
        await SessionPool().run("Hello.", **{"colour": "red"})  # pyright: ignore[reportArgumentType] - that is the point


async def test_a_cli_with_fixed_prompts_gets_a_process_for_each_prompt(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """SES-94."""
    old = replace(OPTIONS, cli_path=OLD_CLI)
    pool = make(size=3)
    prompts = ("One.", "Two.", "Three.", "One.", "Two.", "One.")
    used = [await use(pool, launch(old, system_prompt=prompt)) for prompt in prompts]
    assert [session.number for session in used] == [0, 1, 2, 3, 1, 3]  # the first process was probed
    [warning] = caplog.messages
    assert "claude-agent-sdk 0.2.122" in warning


async def test_a_lease_that_no_process_can_serve_fails_in_the_end(make: Make, starter: Starter) -> None:
    """SES-84."""

    class Impossible(Lease):
        @override
        async def prepare(self, worker: Worker) -> None:
            raise CLIConnectionError(reason="No way")

    pool = make(size=2, prewarm=0)
    lease = Impossible(launch())
    with pytest.raises(CLIConnectionError, match="No way"):
        await pool.acquire(lease)
    pool.give_back(lease)
    assert len(starter.sessions) == 3
    assert await use(pool) is starter.sessions[3]
