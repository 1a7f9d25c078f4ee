"""Hooks, as the CLI runs them: inputs, outputs, and the fate of a call when a hook fails.

Over 400 lines, in a single file: each test is another event or outcome of hooks, with the same stand-ins.
"""

import asyncio
import inspect
import itertools
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from claude_agent_sdk import ClaudeAgentOptions, PreToolUseHookInput, UserPromptSubmitHookInput
from mcp.server.mcpserver import MCPServer

from cc_loopback import LoopbackServer
from cc_session import Hook, HookResult, Session, Turn, TurnError, hook
from cc_session.hooks.hook import OnError

from . import conftest
from .conftest import say

Function = Callable[[Any], Any]
# The CLI knows a call by the id, also in later turns.
_numbers = itertools.count(1)


def bash(command: str) -> dict[str, Any]:
    return conftest.bash(next(_numbers), command)


class Shared:
    """A process that calls the present test's hooks, or else hooks without an opinion."""

    session: Session

    def __init__(self, bench: Any) -> None:
        self.bench = bench
        self.functions: dict[str, Function] = {}
        self.stderr: list[str] = []
        events = ("PostToolUse", "PostToolUseFailure", "Stop", "SubagentStart", "SubagentStop", "UserPromptSubmit")
        self.hooks = [self._hook(event, event) for event in (*events, "SessionEnd", "Notification")]
        self.hooks += [self._hook("PreToolUse", name) for name in ("first", "second")]
        self.hooks += [self._hook("PreToolUse", name, name) for name in ("Bash", "Write")]
        self.hooks.append(hook("PreToolUse")(lambda input: self._call("in_thread", input)))

    def _hook(self, event: str, name: str, matcher: str | None = None) -> Hook[Any]:
        async def call(input: Any) -> Any:
            result = self._call(name, input)
            return await result if inspect.isawaitable(result) else result

        return hook(event, matcher)(call)

    def _call(self, name: str, input: Any) -> Any:
        return self.functions.get(name, lambda _: HookResult.no_opinion())(input)

    async def turn(self, *calls: dict[str, Any], then: Sequence[dict[str, Any]] = (), **hooks: Function) -> Turn:
        """Run a turn in which the model makes these calls and these hooks are called."""
        self.functions = hooks
        self.bench.will_call(*calls, then=then)
        async with asyncio.timeout(40):
            return await self.session.run("Go.")


@pytest.fixture(scope="module")
async def process(module_bench: Any) -> AsyncIterator[Shared]:
    shared = Shared(module_bench)
    options = replace(module_bench.options, permission_mode="bypassPermissions", stderr=shared.stderr.append)
    async with await Session.open(options, hooks=shared.hooks) as shared.session:
        yield shared


@pytest.fixture
async def shared(process: Shared, server: LoopbackServer) -> AsyncIterator[Shared]:
    process.bench.begin()
    await process.session.reset()
    yield process
    assert process.stderr == []


async def test_a_hook_sees_the_call_and_lets_it_pass(shared: Shared) -> None:
    """SES-36, SES-42: by the tool name."""
    inputs: list[tuple[str, PreToolUseHookInput]] = []

    def noting_as(name: str) -> Function:
        return lambda input: inputs.append((name, input)) or HookResult.no_opinion()

    call = bash("touch file")
    await shared.turn(call, Bash=noting_as("of Bash"), Write=noting_as("of Write"))

    [(name, seen_call)] = inputs
    assert (name, seen_call["tool_name"], seen_call["tool_input"]["command"]) == ("of Bash", "Bash", "touch file")
    assert (seen_call["tool_use_id"], seen_call["cwd"]) == (call["id"], str(shared.bench.folder))
    assert shared.bench.files == {"file"}


@pytest.mark.parametrize("result", [HookResult.deny("Not today."), HookResult.ask("Really?")])
async def test_what_a_hook_denies_does_not_run(shared: Shared, result: HookResult) -> None:
    """SES-42: nor a question under bypass, without a callback to answer it."""
    call = bash("touch file")
    await shared.turn(call, first=say(result))

    assert shared.bench.files == set()
    assert result.reason in shared.bench.results[call["id"]]


async def test_deny_wins_over_allow_and_all_of_them_run(shared: Shared) -> None:
    """SES-42."""
    ran: list[str] = []

    def noted(result: HookResult) -> Function:
        return lambda _: ran.append(result.reason) or result

    results = [HookResult.allow("1"), HookResult.deny("2"), HookResult.allow("3")]
    await shared.turn(bash("touch file"), **dict(zip(("first", "second", "Bash"), map(noted, results), strict=True)))

    assert sorted(ran) == ["1", "2", "3"]
    assert shared.bench.files == set()


async def test_changed_input_changed_output_and_added_context_take_effect(
    shared: Shared, server: LoopbackServer
) -> None:
    """SES-42."""

    def elsewhere(input: PreToolUseHookInput) -> HookResult:
        return HookResult.allow(updated_input={**input["tool_input"], "command": "echo a > other; echo loud"})

    def quiet(input: Mapping[str, Any]) -> HookResult:
        response = input["tool_response"]
        return HookResult(updated_output={**response, "stdout": response["stdout"].replace("loud", "quiet")})

    def add(input: UserPromptSubmitHookInput) -> HookResult:
        return HookResult(context=f"About {input['prompt']} it is known that it is late.")

    call = bash("touch file")
    await shared.turn(call, Bash=elsewhere, PostToolUse=quiet, UserPromptSubmit=add)

    assert shared.bench.files == {"other"}
    assert "quiet" in shared.bench.results[call["id"]]
    assert "loud" not in shared.bench.results[call["id"]]
    assert "About Go. it is known that it is late." in str(server.requests[0]["messages"])


async def test_a_hook_ends_the_turn_or_blocks_the_prompt_also_by_failing(
    shared: Shared, server: LoopbackServer
) -> None:
    """SES-38, SES-40, SES-72: the CLI does not take that for an error, and the session goes on."""
    enough, refuse = say(HookResult(stops=True, reason="Enough.")), say(HookResult.deny("No prompts."))
    cases: list[tuple[dict[str, Any], str, str | None, int]] = [
        ({"first": enough}, "hook_stopped", None, 1),
        ({"UserPromptSubmit": enough}, "hook_stopped", None, 0),
        ({"UserPromptSubmit": refuse}, "prompt_blocked", "No prompts.", 0),
        ({"UserPromptSubmit": raises}, "prompt_blocked", "raised RuntimeError", 0),
    ]
    for hooks, kind, words, requests in cases:
        before = len(server.requests)
        with pytest.raises(TurnError, match=words) as raised:
            await shared.turn(bash("touch file"), **hooks)
        assert (raised.value.kind, len(server.requests) - before) == (kind, requests)
        assert not raised.value.turn.result.is_error
        assert (await shared.turn()).text == "Done."


@pytest.mark.worlds
async def test_a_command_in_a_skill_s_text_runs_only_if_its_hook_lets_it(
    server: LoopbackServer, tmp_path: Path
) -> None:
    """SES-38, SES-40: a failing hook, a question and a changed input stop it, too."""
    skill = tmp_path / ".claude" / "skills" / "greet"
    skill.mkdir(parents=True)
    commands = ("echo passes", "echo denied", "echo asked", "echo changed", "echo fails")
    lines = "\n".join(f"!`{command}`" for command in commands)
    (skill / "SKILL.md").write_text(f"---\nname: greet\ndescription: Greets.\n---\n{lines}\n", "utf-8")

    @hook("PreSkillShellCommand", "Bash")
    def check(input: Mapping[str, Any]) -> HookResult:
        match input["tool_input"]["command"].split()[1]:
            case "denied":
                return HookResult.deny("Not this.")
            case "asked":
                return HookResult.ask("Really?")
            case "changed":
                return HookResult.allow(updated_input={"command": "true"})
            case "fails":
                raise RuntimeError("a secret")
            case _:
                return HookResult.no_opinion()

    server.script([[{"type": "tool_use", "name": "Skill", "input": {"skill": "greet"}}], "Done."])
    options = ClaudeAgentOptions(
        cwd=tmp_path,
        env=server.env(),
        tools=["Bash", "Skill"],
        setting_sources=["project"],
        permission_mode="bypassPermissions",
    )
    async with await Session.open(options, hooks=[check]) as session:
        await session.run("Go.")

    text = str(server.requests[-1]["messages"][-1])
    assert "\\n\\npasses\\n" in text
    for words in ("Not this.", "Really?", "raised ValueError", "raised RuntimeError"):
        assert words in text
    assert text.count("not run: blocked by hook") == 4


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


FAILING: list[tuple[Callable[..., Any], str]] = [
    (raises, "raised RuntimeError"),
    (returns_nothing, "raised TypeError"),
    (too_slow, "took longer than 0.2 seconds"),
    (too_slow_in_a_thread, "took longer than 0.2 seconds"),
    (leaves, "raised QuitError"),
    (cancels_itself, "raised QuitError"),
    (say({"permissionDecision": "allow"}), "raised ValueError"),
    (say({"hookSpecificOutput": {"hookEventName": "PostToolUse"}}), "raised ValueError"),
    (say({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "Deny"}}), "raised ValueError"),
    (say({"hookSpecificOutput": ["deny"]}), "raised TypeError"),
    (say(HookResult(updated_output="x")), "raised ValueError"),
]


def noting(ran: list[str], name: str) -> Callable[[], None]:
    def run() -> None:
        ran.append(name)

    return run


async def test_a_hook_that_fails_blocks_the_call_and_its_failure_is_reported(
    bench: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """SES-39, SES-40, SES-41: beside a hook that allows it, in the mode that allows everything.

    Exception: hooks that are declared to continue on errors.
    """
    server: Any = MCPServer("any")
    hooks: list[Hook[Any]] = [hook("PreToolUse")(say(HookResult.allow()))]
    calls: dict[str, tuple[dict[str, Any], str]] = {}
    ran: list[str] = []
    for on_error in get_args(OnError):
        for number, (function, words) in enumerate(FAILING):
            name = f"{on_error}_{number}"
            server.add_tool(noting(ran, name), name=name)
            matcher, seconds = f"mcp__here__{name}", 0.2 if "took longer" in words else 30
            hooks.append(hook("PreToolUse", matcher, timeout=seconds, on_error=on_error)(function))
            calls[name] = bash("") | {"name": matcher, "input": {}}, words
    bench.will_call(*(call for call, _ in calls.values()))

    assert await bench.run(None, "bypassPermissions", hooks=hooks, mcp_servers={"here": server}) == []

    assert ran == [f"continue_{number}" for number in range(len(FAILING))]
    assert [record.name for record in caplog.records].count("cc_session.hooks.calls") == len(calls)
    for name, (call, words) in calls.items():
        assert (words in bench.results[call["id"]]) == (name not in ran), name
        assert words in caplog.text
    assert "a secret" not in str(bench.results)


async def test_a_hook_failing_at_the_end_does_not_prolong_the_turn(shared: Shared, server: LoopbackServer) -> None:
    """SES-40: on Stop, to block means to continue."""
    assert (await shared.turn(Stop=raises, SessionEnd=raises, Notification=raises)).text == "Done."
    assert len(server.requests) == 1


@pytest.mark.deaths
async def test_a_process_of_ours_that_hangs_blocks_the_call(
    bench: Any, server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SES-39: the CLI stops waiting, and does not run the tool."""
    monkeypatch.setattr("cc_session.hooks.calls._CLI_WAITS_LONGER_SECONDS", 0.3)
    gave_up: list[bool] = []

    async def hang(input: PreToolUseHookInput) -> HookResult:
        # The background loop hangs, with all that could answer, until the CLI has informed the model.
        deadline = time.monotonic() + 20
        while len(server.requests) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)  # noqa: ASYNC251
        gave_up.append(len(server.requests) == 2)
        return HookResult.allow()

    call = bash("touch file")
    bench.will_call(call)
    hooks = [Hook("PreToolUse", hang, timeout=0.2, runs_here=True)]
    assert await bench.run(None, "bypassPermissions", hooks=hooks) == []

    assert gave_up == [True]
    assert bench.files == set()
    assert bench.results[call["id"]]


async def test_an_interrupt_cancels_a_hook_that_waits(shared: Shared) -> None:
    waits, was_cancelled = asyncio.Event(), asyncio.Event()

    async def wait(input: PreToolUseHookInput) -> HookResult:
        waits.set()
        try:
            await asyncio.sleep(60)
        finally:
            was_cancelled.set()
        return HookResult.allow()

    asking = asyncio.ensure_future(shared.turn(bash("touch file"), first=wait))
    async with asyncio.timeout(40):
        await waits.wait()
        await shared.session.interrupt()
        await was_cancelled.wait()
        with pytest.raises(TurnError, match="interrupted"):
            await asking
    assert shared.bench.files == set()


async def test_coroutines_run_on_the_caller_s_loop_functions_in_a_thread(shared: Shared) -> None:
    """SES-74: so that it may use that loop's objects."""
    loops: list[asyncio.AbstractEventLoop] = []
    threads: list[threading.Thread] = []

    async def on_loop(input: PreToolUseHookInput) -> HookResult:
        loops.append(asyncio.get_running_loop())
        return HookResult.no_opinion()

    def in_thread(input: PreToolUseHookInput) -> HookResult:
        threads.append(threading.current_thread())
        return HookResult.no_opinion()

    async def once() -> asyncio.AbstractEventLoop:
        await shared.turn(bash("true"), first=on_loop, in_thread=in_thread)
        return asyncio.get_running_loop()

    here = await once()
    there = await asyncio.to_thread(lambda: asyncio.run(once()))

    assert loops == [here, there]
    assert len({id(thread) for thread in (*threads, threading.current_thread())}) == 3


async def test_an_invalid_hook_is_refused_at_its_definition_or_use(options: ClaudeAgentOptions) -> None:
    """SES-39."""
    with pytest.raises(TypeError):
        hook("Stop")(lambda: {})  # pyright: ignore[reportArgumentType]  # which is the point
    for seconds in (0, -1, float("inf"), 3e6):
        with pytest.raises(ValueError):
            hook("Stop", timeout=seconds)(say({}))
    wrong: Any = "ignore"
    with pytest.raises(ValueError, match="on_error is 'block' or 'continue'"):
        hook("Stop", on_error=wrong)(say({}))
    functions: Any = [say({})]
    with pytest.raises(TypeError, match="a hook is made by"):
        await Session.open(options, hooks=functions)


def test_a_hook_can_be_called_and_shows_what_it_is() -> None:
    look = hook("PreToolUse", "Bash")(say(HookResult.deny("Bash")))
    call: Any = {"tool_name": "Bash"}
    assert look(call) == HookResult.deny("Bash")
    assert repr(look).endswith("say.<locals>.<lambda> on PreToolUse matcher='Bash'>")
