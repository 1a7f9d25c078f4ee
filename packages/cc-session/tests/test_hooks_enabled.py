"""Detection of CLIs that run no hooks: bare mode, and CLIs that cannot or may not run them."""

import json
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, HookMatcher

from cc_session import HookResult, HooksDisabledError, Session, hook

from .conftest import FakeCLI, bash, say

STOP = hook("Stop")(say({}))


@pytest.mark.worlds
async def test_the_sealed_default_takes_bare_back_for_hooks_in_the_options_too(bench: Any) -> None:
    """SES-44: all other tests with hooks have sealed options."""
    inputs: list[Any] = []

    async def look(input: Any, tool_use_id: str | None, context: Any) -> Any:
        inputs.append(input)
        return {}

    assert "bare" in bench.options.extra_args
    await bench.run(changes={"hooks": {"UserPromptSubmit": [HookMatcher(hooks=[look])]}})
    assert len(inputs) == 1


@pytest.mark.parametrize("changes", [{"extra_args": {"bare": None}}, {"env": {"CLAUDE_CODE_SIMPLE": "1"}}])
async def test_bare_and_hooks_are_refused_together(changes: Any) -> None:
    """SES-44: the CLI would not report it."""
    with pytest.raises(ValueError, match="in bare mode Claude Code runs no hooks"):
        await Session.open(ClaudeAgentOptions(**changes), hooks=[STOP])


@pytest.mark.worlds
@pytest.mark.parametrize("place", ["environment", "the user's settings"])
async def test_bare_mode_from_elsewhere_is_turned_off(bench: Any, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """SES-44."""
    changes: dict[str, Any] = {}
    if place == "environment":
        monkeypatch.setenv("CLAUDE_CODE_SIMPLE", "1")
    else:
        settings = Path(bench.options.env["CLAUDE_CONFIG_DIR"]) / "settings.json"
        settings.write_text(json.dumps({"env": {"CLAUDE_CODE_SIMPLE": "1"}}))
        changes = {"setting_sources": ["user"]}
    bench.will_call(bash(1, "touch file"))
    refuse = hook("PreToolUse")(say(HookResult.deny("No.")))
    await bench.run(None, "bypassPermissions", changes, hooks=[refuse])
    assert bench.files == set()


@pytest.mark.parametrize(
    ("listing", "words"),
    [
        ("response={}", "the CLI does not say whether it runs them"),
        ('subtype="error", error="Unsupported"', "cannot say whether it runs them: Unsupported"),
        ('response={"policy": {"disabledByPolicy": True}}', "the managed settings of this machine forbid them"),
        ('response={"policy": {"managedOnly": True}}', "the managed settings of this machine forbid them"),
        ('response={"policy": {}, "bareMode": {}}', "it runs in bare mode"),
    ],
)
async def test_a_cli_that_may_not_run_hooks_is_refused(fake_cli: FakeCLI, listing: str, words: str) -> None:
    """SES-44."""
    options = fake_cli(f"""
answer(json.loads(sys.stdin.readline()), response={{"hook_on_failure_supported": True}})
answer(json.loads(sys.stdin.readline()), response={{}})
answer(json.loads(sys.stdin.readline()), {listing})
sys.stdin.read()
""")
    with pytest.raises(HooksDisabledError, match=words):
        await Session.open(options, hooks=[STOP])
