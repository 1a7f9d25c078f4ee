"""Detection of CLIs that run no hooks: bare mode, and CLIs that cannot or may not run them."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, HookMatcher

from cc_loopback import LoopbackServer
from cc_session import Content, HookResult, HooksDisabledError, Session, hook, sealed_options

Ask = Callable[[Session, Content], Any]
TOUCH = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "touch file", "description": "d"}}


def saying(output: Any) -> Callable[[Any], Any]:
    def say(input: Any) -> Any:
        return output

    return say


async def run(bench: Any, ask: Ask, **changes: Any) -> None:
    """One turn, with a hook that denies all calls."""
    options = replace(bench.options, permission_mode="bypassPermissions", **changes)
    refuse = hook("PreToolUse")(saying(HookResult.deny("No.")))
    async with await Session.open(options, hooks=[refuse]) as session:
        await ask(session, "Go.")


async def test_the_sealed_default_takes_bare_back_for_hooks_in_the_options_too(bench: Any, ask: Ask) -> None:
    """SES-44: all tests of this package with hooks of its own are of sealed options."""
    seen: list[Any] = []

    async def look(input: Any, tool_use_id: str | None, context: Any) -> Any:
        seen.append(input)
        return {}

    assert "bare" in bench.options.extra_args
    options = replace(bench.options, hooks={"UserPromptSubmit": [HookMatcher(hooks=[look])]})
    async with await Session.open(options) as session:
        await ask(session, "Go.")

    assert len(seen) == 1


async def test_without_bare_the_model_is_told_about_the_machine_and_nothing_else_is_different(
    server: LoopbackServer, ask: Ask
) -> None:
    """SES-44."""
    bodies: list[Any] = []
    for hooks in ([], [hook("Stop")(saying({}))]):
        async with await Session.open(sealed_options(env=server.env(), system_prompt="Hi."), hooks=hooks) as session:
            await ask(session, "Hello.")
        bodies.append(server.requests[-1])
    bare, hooked = bodies

    environment = hooked["messages"].pop()
    assert (environment["role"], environment["content"][:13]) == ("system", "# Environment")
    assert len(environment["content"]) < 2000
    assert hooked | {"metadata": None} == bare | {"metadata": None}


@pytest.mark.parametrize("changes", [{"extra_args": {"bare": None}}, {"env": {"CLAUDE_CODE_SIMPLE": "1"}}])
async def test_bare_and_hooks_are_refused_together(changes: Any) -> None:
    """SES-44: the CLI would not report it."""
    with pytest.raises(ValueError, match="in bare mode Claude Code runs no hooks"):
        await Session.open(ClaudeAgentOptions(**changes), hooks=[hook("Stop")(saying({}))])


async def test_bare_mode_that_comes_from_the_environment_is_turned_off(
    bench: Any, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SES-44."""
    monkeypatch.setenv("CLAUDE_CODE_SIMPLE", "1")
    bench.will_call(TOUCH)
    await run(bench, ask)
    assert bench.files == set()


async def test_bare_mode_that_comes_from_the_user_s_settings_is_turned_off(bench: Any, ask: Ask) -> None:
    """SES-44."""
    settings = Path(bench.options.env["CLAUDE_CONFIG_DIR"]) / "settings.json"
    settings.write_text(json.dumps({"env": {"CLAUDE_CODE_SIMPLE": "1"}}))
    bench.will_call(TOUCH)
    await run(bench, ask, setting_sources=["user"])
    assert bench.files == set()


async def test_a_cli_that_cannot_say_that_it_runs_hooks_is_not_used(fake_cli: Callable[[str], Any]) -> None:
    """SES-44."""
    options = fake_cli("""
answer(json.loads(sys.stdin.readline()), response={"hook_on_failure_supported": True})
for frame in frames():
    answer(frame, response={})
""")
    with pytest.raises(HooksDisabledError, match="the CLI does not say whether it runs them"):
        await Session.open(options, hooks=[hook("Stop")(saying({}))])


@pytest.mark.parametrize(
    ("listing", "words"),
    [
        ('subtype="error", error="Unsupported"', "cannot say whether it runs them: Unsupported"),
        ('response={"policy": {"disabledByPolicy": True}}', "the managed settings of this machine forbid them"),
        ('response={"policy": {"managedOnly": True}}', "the managed settings of this machine forbid them"),
        ('response={"policy": {}, "bareMode": {}}', "it runs in bare mode"),
    ],
)
async def test_a_cli_that_does_not_run_hooks_is_not_used(
    fake_cli: Callable[[str], Any], listing: str, words: str
) -> None:
    """SES-44."""
    options = fake_cli(f"""
answer(json.loads(sys.stdin.readline()), response={{"hook_on_failure_supported": True}})
answer(json.loads(sys.stdin.readline()), response={{}})
answer(json.loads(sys.stdin.readline()), {listing})
sys.stdin.read()
""")
    with pytest.raises(HooksDisabledError, match=words):
        await Session.open(options, hooks=[hook("Stop")(saying({}))])
