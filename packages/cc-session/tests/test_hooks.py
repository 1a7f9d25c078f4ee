"""Hooks, as the CLI runs them: what they see, what they say, and what becomes of a call when one fails."""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, ResultMessage

from cc_loopback import LoopbackServer
from cc_session import (
    Content,
    Hook,
    HookResult,
    PreToolUseHookInput,
    Session,
    UserPromptSubmitHookInput,
    hook,
)

Ask = Callable[[Session, Content], Any]
TOUCH = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "touch file", "description": "d"}}


def bash(number: int, command: str) -> dict[str, Any]:
    return {**TOUCH, "id": f"toolu_{number}", "input": {"command": command, "description": "d"}}


class Stderr:
    """What the CLI says on stderr."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def on(self, options: ClaudeAgentOptions) -> ClaudeAgentOptions:
        return replace(options, stderr=self.lines.append)


async def run(bench: Any, ask: Ask, hooks: list[Hook[Any]], **changes: Any) -> ResultMessage:
    """One turn, with hooks, and with nothing said on stderr."""
    stderr = Stderr()
    options = stderr.on(replace(bench.options, permission_mode="bypassPermissions", **changes))
    async with await Session.open(options, hooks=hooks) as session:
        *_, result = await ask(session, "Go.")
    assert stderr.lines == []
    return result


async def test_a_hook_sees_the_call_and_lets_it_pass(bench: Any, ask: Ask) -> None:
    """SES-36, SES-42."""
    seen: list[PreToolUseHookInput] = []

    @hook("PreToolUse", "Bash")
    async def look(input: PreToolUseHookInput) -> HookResult:
        seen.append(input)
        return HookResult.no_opinion()

    bench.will_call(TOUCH)
    await run(bench, ask, [look])

    [call] = seen
    assert (call["tool_name"], call["tool_input"]["command"]) == ("Bash", "touch file")
    assert (call["tool_use_id"], call["cwd"]) == ("toolu_1", str(bench.folder))
    assert bench.files == {"file"}


@pytest.mark.parametrize("result", [HookResult.deny("Not today."), HookResult.ask("Really?")])
async def test_what_a_hook_denies_does_not_run(bench: Any, ask: Ask, result: HookResult) -> None:
    """SES-42: nor what it asks about when there is nobody to ask, under bypass."""

    @hook("PreToolUse")
    def refuse(input: PreToolUseHookInput) -> HookResult:
        return result

    bench.will_call(TOUCH)
    await run(bench, ask, [refuse])

    assert bench.files == set()
    assert result.reason in bench.results["toolu_1"]


async def test_deny_wins_over_allow_and_all_of_them_run(bench: Any, ask: Ask) -> None:
    """SES-42."""
    ran: list[str] = []

    def saying(result: HookResult) -> Hook[Any]:
        @hook("PreToolUse")
        def say(input: PreToolUseHookInput) -> HookResult:
            ran.append(result.reason)
            return result

        return say

    bench.will_call(TOUCH)
    await run(bench, ask, [saying(HookResult.allow("1")), saying(HookResult.deny("2")), saying(HookResult.allow("3"))])

    assert sorted(ran) == ["1", "2", "3"]
    assert bench.files == set()


async def test_changed_input_changed_output_and_added_context_take_effect(
    bench: Any, server: LoopbackServer, ask: Ask
) -> None:
    """SES-42."""

    @hook("PreToolUse", "Bash")
    def elsewhere(input: PreToolUseHookInput) -> HookResult:
        return HookResult.allow(updated_input={**input["tool_input"], "command": "echo a > other; echo loud"})

    @hook("PostToolUse", "Bash")
    def quiet(input: Mapping[str, Any]) -> HookResult:
        return HookResult(
            updated_output={
                **input["tool_response"],
                "stdout": input["tool_response"]["stdout"].replace("loud", "quiet"),
            }
        )

    @hook("UserPromptSubmit")
    def add(input: UserPromptSubmitHookInput) -> HookResult:
        return HookResult(context=f"About {input['prompt']} it is known that it is late.")

    bench.will_call(TOUCH)
    await run(bench, ask, [elsewhere, quiet, add])

    assert bench.files == {"other"}
    assert "quiet" in bench.results["toolu_1"]
    assert "loud" not in bench.results["toolu_1"]
    assert "About Go. it is known that it is late." in str(server.requests[0]["messages"])


async def test_a_hook_can_end_the_turn(bench: Any, server: LoopbackServer, ask: Ask) -> None:
    @hook("PreToolUse")
    def stop(input: PreToolUseHookInput) -> HookResult:
        return HookResult(stops=True, reason="Enough.")

    bench.will_call(TOUCH)
    result = await run(bench, ask, [stop])

    assert result.terminal_reason == "hook_stopped"
    assert len(server.requests) == 1


async def test_a_prompt_is_blocked(bench: Any, server: LoopbackServer, ask: Ask) -> None:
    """SES-38."""

    @hook("UserPromptSubmit")
    def refuse(input: UserPromptSubmitHookInput) -> HookResult:
        return HookResult.deny("No prompts.")

    result = await run(bench, ask, [refuse])

    assert "No prompts." in (result.result or "")
    assert server.requests == []


async def test_other_events_come_as_well(bench: Any, ask: Ask) -> None:
    """SES-38."""
    seen: list[str] = []

    def look(event: str) -> Hook[Any]:
        @hook(event)
        def append(input: Mapping[str, Any]) -> HookResult:
            seen.append(input["hook_event_name"])
            return HookResult.no_opinion()

        return append

    call = {"type": "tool_use", "id": "toolu_1", "name": "Agent", "input": {"description": "d", "prompt": "p"}}
    bench.will_call(call, then=[bash(2, "exit 3")])
    await run(bench, ask, [look(event) for event in ("SubagentStart", "SubagentStop", "Stop", "PostToolUseFailure")])

    assert sorted(seen) == ["PostToolUseFailure", "Stop", "SubagentStart", "SubagentStop"]


async def too_slow(input: PreToolUseHookInput) -> HookResult:
    await asyncio.sleep(60)
    return HookResult.allow()


def too_slow_in_a_thread(input: PreToolUseHookInput) -> HookResult:
    time.sleep(60)
    return HookResult.allow()


def raises(input: PreToolUseHookInput) -> HookResult:
    raise RuntimeError("a secret")


def returns_nothing(input: PreToolUseHookInput) -> Any:
    return None


def leaves(input: PreToolUseHookInput) -> HookResult:
    raise SystemExit("bye")


async def cancels_itself(input: PreToolUseHookInput) -> HookResult:
    raise asyncio.CancelledError


def of_pre_tool_use(**fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse"} | fields}


def saying(output: Any) -> Callable[[Any], Any]:
    def say(input: Any) -> Any:
        return output

    return say


FAILING: list[tuple[Callable[..., Any], str]] = [
    (raises, "raised RuntimeError"),
    (returns_nothing, "raised TypeError"),
    (too_slow, "took longer than 0.2 seconds"),
    (too_slow_in_a_thread, "took longer than 0.2 seconds"),
    (leaves, "raised QuitError"),
    (cancels_itself, "raised QuitError"),
    (saying({"permissionDecision": "allow"}), "raised ValueError"),
    (saying(of_pre_tool_use(hookEventName="PostToolUse")), "raised ValueError"),
    (saying(of_pre_tool_use(permissionDecision="Deny")), "raised ValueError"),
    (saying({"hookSpecificOutput": ["deny"]}), "raised TypeError"),
    (saying(HookResult(updated_output="x")), "raised ValueError"),
]


@pytest.mark.parametrize(("function", "words"), FAILING, ids=range(len(FAILING)))
async def test_a_hook_that_fails_blocks_the_call_and_its_failure_is_reported(
    bench: Any, ask: Ask, caplog: pytest.LogCaptureFixture, function: Callable[..., Any], words: str
) -> None:
    """SES-39, SES-40, SES-41, SES-F13: beside one that allows it, in the mode that allows everything."""

    @hook("PreToolUse")
    def allow(input: PreToolUseHookInput) -> HookResult:
        return HookResult.allow()

    failing = hook("PreToolUse", timeout=0.2)(function)
    bench.will_call(TOUCH)
    began = time.monotonic()
    await run(bench, ask, [allow, failing])

    assert bench.files == set()
    assert words in bench.results["toolu_1"]
    assert "a secret" not in bench.results["toolu_1"]
    assert words in caplog.text
    assert time.monotonic() - began < 40


@pytest.mark.parametrize(("function", "words"), FAILING[:3])
async def test_a_hook_can_be_declared_to_let_pass_what_it_fails_about(
    bench: Any, ask: Ask, caplog: pytest.LogCaptureFixture, function: Callable[..., Any], words: str
) -> None:
    """SES-40: that one, and no other."""
    failing = hook("PreToolUse", timeout=0.2, on_error="continue")(function)
    bench.will_call(TOUCH)
    await run(bench, ask, [failing])

    assert bench.files == {"file"}
    assert words in caplog.text


async def test_a_prompt_is_not_sent_when_its_hook_fails(bench: Any, server: LoopbackServer, ask: Ask) -> None:
    """SES-40."""
    result = await run(bench, ask, [hook("UserPromptSubmit")(raises)])

    assert "raised RuntimeError" in (result.result or "")
    assert server.requests == []


async def test_a_hook_that_fails_at_the_end_does_not_keep_the_turn_going(
    bench: Any, server: LoopbackServer, ask: Ask
) -> None:
    """SES-40: on Stop, to block is to go on."""
    result = await run(bench, ask, [hook("Stop")(raises), hook("SessionEnd")(raises), hook("Notification")(raises)])

    assert result.result == "Done."
    assert len(server.requests) == 1


async def test_a_process_of_ours_that_hangs_blocks_the_call(bench: Any, ask: Ask) -> None:
    """SES-39: the CLI gives up by itself, and does not run the tool."""

    async def hang(input: PreToolUseHookInput) -> HookResult:
        # It is the loop of the processes that hangs, with all that could answer in time.
        time.sleep(4)  # noqa: ASYNC251
        return HookResult.allow()

    hanging: Hook[Any] = Hook("PreToolUse", hang, timeout=0.2, runs_here=True)
    bench.will_call(TOUCH)
    await run(bench, ask, [hanging])

    assert bench.files == set()
    assert bench.results["toolu_1"]


async def test_an_interrupt_cancels_a_hook_that_waits(bench: Any, ask: Ask) -> None:
    waits, was_cancelled = asyncio.Event(), asyncio.Event()

    @hook("PreToolUse", timeout=60)
    async def wait(input: PreToolUseHookInput) -> HookResult:
        waits.set()
        try:
            await asyncio.sleep(60)
        finally:
            was_cancelled.set()
        return HookResult.allow()

    bench.will_call(TOUCH)
    async with await Session.open(bench.options, hooks=[wait]) as session, asyncio.timeout(40):
        asking = ask(session, "Go.")
        await waits.wait()
        await session.interrupt()
        await was_cancelled.wait()
        await asking
    assert bench.files == set()


async def test_a_coroutine_runs_on_the_loop_of_who_asks_and_a_function_in_a_thread(bench: Any, ask: Ask) -> None:
    """SES-74: so that it may use what lives there."""
    loops: list[asyncio.AbstractEventLoop] = []
    threads: list[threading.Thread] = []

    @hook("PreToolUse")
    async def on_loop(input: PreToolUseHookInput) -> HookResult:
        loops.append(asyncio.get_running_loop())
        return HookResult.no_opinion()

    @hook("PreToolUse")
    def in_thread(input: PreToolUseHookInput) -> HookResult:
        threads.append(threading.current_thread())
        return HookResult.no_opinion()

    async def turn(session: Session) -> asyncio.AbstractEventLoop:
        bench.will_call(TOUCH)
        await ask(session, "Go.")
        return asyncio.get_running_loop()

    async with await Session.open(bench.options, hooks=[on_loop, in_thread]) as session:
        here = await turn(session)
        there = await asyncio.to_thread(lambda: asyncio.run(turn(session)))

    assert loops == [here, there]
    assert len({id(thread) for thread in (*threads, threading.current_thread())}) == 3


def test_what_cannot_be_a_hook_is_refused_where_it_is_defined() -> None:
    """SES-39."""
    with pytest.raises(TypeError):
        hook("Stop")(lambda: {})  # pyright: ignore[reportArgumentType]  # which is the point
    for seconds in (0, -1, float("inf"), 3e6):
        with pytest.raises(ValueError):
            hook("Stop", timeout=seconds)(saying({}))
    wrong: Any = "ignore"
    with pytest.raises(ValueError, match="on_error is 'block' or 'continue'"):
        hook("Stop", on_error=wrong)(saying({}))


async def test_only_hooks_are_taken_for_hooks(options: ClaudeAgentOptions) -> None:
    functions: Any = [lambda input: {}]  # pyright: ignore[reportUnknownLambdaType]
    with pytest.raises(TypeError, match="a hook is made by"):
        await Session.open(options, hooks=functions)


def test_a_hook_can_be_called_and_shows_what_it_is() -> None:
    @hook("PreToolUse", "Bash")
    def look(input: PreToolUseHookInput) -> HookResult:
        return HookResult.deny(input["tool_name"])

    call: Any = {"tool_name": "Bash"}
    assert look(call) == HookResult.deny("Bash")
    assert repr(look).endswith("look on PreToolUse matcher='Bash'>")
