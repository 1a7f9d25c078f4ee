"""Events and matchers that the CLI would drop in silence."""

import re
from dataclasses import replace
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions

from cc_session import EVENTS, HookResult, Session, hook


def test_any_event_of_the_cli_can_be_used_and_no_other() -> None:
    """SES-38."""

    def nothing(input: dict[str, Any]) -> HookResult:
        return HookResult.no_opinion()

    for event in EVENTS:
        made = hook(event)(nothing)
        assert (made.event, made.matcher) == (event, None)
    for event in ("", "PreTool", "pretooluse", "BeforeTool"):
        with pytest.raises(ValueError, match=f"no hook event '{event}'; it has PreToolUse"):
            hook(event)


@pytest.mark.worlds
async def test_the_events_are_those_of_the_cli(options: ClaudeAgentOptions) -> None:
    """SES-38, SES-78: notices when a CLI has others, or has others with something to match."""
    options = replace(options, extra_args={})
    async with await Session.open(options) as session:
        listing: Any = await session.control("get_hooks_listing")

    assert {event["name"]: event["supportsMatcher"] for event in listing["eventCatalog"]} == dict(EVENTS)


def test_a_matcher_that_both_languages_read_alike_is_taken() -> None:
    """SES-36: also a name that only looks like a pattern."""
    plain = (None, "", "*", "Bash", "Edit|Write", "Edit, Write", "mcp__git-hub__.*", "^Note", "a.h")
    for matcher in (*plain, r"[(?P<]x", r"\(\?P", r"a\++", "[*+]+", r"\\A", "(?!a)b", "(?:a|b)c", "(?<!a)b."):
        assert hook("PreToolUse", matcher)


@pytest.mark.parametrize(
    ("event", "matchers", "error", "words"),
    [
        ("PreToolUse", ["[", "(", "*a", "a**", "(?<=a+)b", "[]"], re.error, ""),
        (
            "PreToolUse",
            ["(?P<a>b)", "(?i)bash", "a++", r"\ABash", r"Bash\Z", "(?>a)", "a{,3}", "(?#a)b"],
            ValueError,
            "means something else or",
        ),
        ("PreToolUse", ["|", " , "], ValueError, "names nothing"),
        ("Stop", ["Bash"], ValueError, "Stop has nothing that a matcher could match"),
        ("FileChanged", ["a, b["], re.error, ""),
    ],
    ids=["no regular expression", "another one in JavaScript", "no name", "nothing to match", "files"],
)
def test_a_matcher_that_the_cli_would_ignore_is_an_error(
    event: str, matchers: list[str], error: type[Exception], words: str
) -> None:
    """SES-37, SES-40: in silence."""
    for matcher in matchers:
        with pytest.raises(error, match=words or None):
            hook(event, matcher)
