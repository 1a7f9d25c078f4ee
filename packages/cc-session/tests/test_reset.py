"""Resets to an empty conversation, and other changes to a running process."""

from dataclasses import replace
from typing import Any

import anyio
import pytest
from claude_agent_sdk import ClaudeAgentOptions, HookMatcher, PermissionMode

from cc_loopback import LoopbackServer
from cc_session import Session, SessionBusyError, TurnError
from cc_types import ControlRequestError

from .conftest import cancelled, say

MODEL = "claude-sonnet-5"


async def test_a_reset_ends_a_turn_that_runs(server: LoopbackServer, session: Session, slow_api: Any) -> None:
    """SES-62, SES-63: `test_pool_exactness.py` has possible earlier work."""
    await session.add_user("One")
    running = await slow_api.during(session.run("Two"))

    with anyio.fail_after(10):
        assert await session.reset() == "rewound"
        with pytest.raises(TurnError, match="interrupted"):
            await running
        assert await session.reset() == "rewound"  # there is nothing to do

    server.respond = say("Hello.")
    await session.run("Three")
    assert len(server.requests[-1]["messages"]) == 1


@pytest.mark.worlds
async def test_a_prompt_blocked_by_a_hook_does_not_prevent_a_reset(
    server: LoopbackServer, options: ClaudeAgentOptions
) -> None:
    """SES-63: it is the first message, but not in the conversation."""

    async def block(data: Any, *_: Any) -> Any:
        return {"decision": "block", "reason": "No."} if "bad" in data["prompt"] else {}

    server.respond = say("Hello.")
    hooks: Any = {"UserPromptSubmit": [HookMatcher(hooks=[block], timeout=10)]}
    options = replace(options, hooks=hooks, extra_args={"no-session-persistence": None})
    async with await Session.open(options) as session:
        with pytest.raises(TurnError, match="prompt_blocked"):
            await session.run("bad")
        assert await session.reset() == "rewound"
        with pytest.raises(TurnError, match="prompt_blocked"):
            await session.run("bad again")
        await session.run("good")
        assert await session.reset() == "rewound"
        await session.run("good again")

    assert "good again" in str(server.requests[-1]["messages"])
    assert "Hello." not in str(server.requests[-1]["messages"])


@pytest.mark.worlds
@pytest.mark.parametrize("first", ["assistant", "clear", "command"])
async def test_what_a_rewind_would_leave_behind_is_told(server: LoopbackServer, session: Session, first: str) -> None:
    """SES-63: never half empty in silence."""
    server.respond = say("Hello.")
    match first:
        case "assistant":
            await session.add_assistant("I begin.", model=MODEL)
        case "clear":
            await session.reset(tools_changed=True)
        case _:
            await session.run("/cost", verbatim=False)
    await session.run("One")

    with pytest.raises(ControlRequestError, match="the conversation begins with"):
        await session.reset()


@pytest.mark.worlds
async def test_clearing_is_for_a_free_session(server: LoopbackServer, session: Session, slow_api: Any) -> None:
    """SES-08."""
    running = await slow_api.during(session.run("One"))
    with pytest.raises(SessionBusyError):
        await session.reset(tools_changed=True)

    await cancelled(running)
    server.respond = say("Hello.")
    assert await session.reset(tools_changed=True) == "cleared"  # it waits until the turn has ended


async def test_model_and_permission_mode_are_changed_for_the_turns_to_come(
    server: LoopbackServer, options: ClaudeAgentOptions
) -> None:
    """SES-07, SES-53."""
    async with await Session.open(options) as session:
        await session.set_model("claude-opus-5")
        await session.run("Hello?")
        assert server.requests[-1]["model"] == "claude-opus-5"
        with pytest.raises(ControlRequestError, match="set_model"):
            await session.set_model("")

        modes: list[PermissionMode] = ["default", "acceptEdits", "plan", "auto", "dontAsk"]
        for mode in modes:
            await session.set_permission_mode(mode)
        nonsense: Any = "nonsense"
        with pytest.raises(ValueError, match="no permission mode 'nonsense'; there are default"):
            await session.set_permission_mode(nonsense)
        with pytest.raises(ControlRequestError, match="not launched with"):
            await session.set_permission_mode("bypassPermissions")


@pytest.mark.worlds
async def test_a_session_tells_about_itself_and_no_secret(server: LoopbackServer, options: ClaudeAgentOptions) -> None:
    """SES-07, SES-68."""
    server.respond = say("Hello.")
    options = replace(
        options,
        env={**options.env, "ANTHROPIC_API_KEY": "sk-secret"},
        extra_args={**options.extra_args, "debug-to-stderr": None},
    )
    async with await Session.open(options) as session:
        assert session.info["pid"] == session.pid
        assert {"commands", "models", "account"} <= session.info.keys()
        await session.run("Hello?")
        assert repr(session).startswith(f"<Session pid={session.pid} idle turns=1 cost_usd=")
        assert session.stderr_tail
        assert "sk-secret" not in repr(session) + repr(vars(session))
