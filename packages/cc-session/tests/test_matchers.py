"""Events and matchers, which the CLI would drop in silence."""

import re
from dataclasses import replace
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions

from cc_session import EVENTS, HookResult, Session, hook


@pytest.mark.parametrize("event", ["", "PreTool", "pretooluse", "BeforeTool"])
def test_an_event_that_the_cli_does_not_know_is_refused(event: str) -> None:
    """SES-38."""
    with pytest.raises(ValueError, match=f"no hook event '{event}'; it has PreToolUse"):
        hook(event)


@pytest.mark.parametrize("event", EVENTS)
def test_any_event_of_the_cli_can_be_used(event: str) -> None:
    """SES-38."""

    @hook(event)
    def nothing(input: dict[str, Any]) -> HookResult:
        return HookResult.no_opinion()

    assert (nothing.event, nothing.matcher) == (event, None)


async def test_the_events_are_those_of_the_cli(options: ClaudeAgentOptions) -> None:
    """SES-38, SES-78: notices when a CLI has others, or has others with something to match."""
    options = replace(options, extra_args={})
    async with await Session.open(options) as session:
        listing: Any = await session.control("get_hooks_listing")

    assert {event["name"]: event["supportsMatcher"] for event in listing["eventCatalog"]} == dict(EVENTS)


@pytest.mark.parametrize(
    "matcher", [None, "", "*", "Bash", "Edit|Write", "Edit, Write", "mcp__git-hub__.*", "^Note", "a.h"]
)
def test_a_matcher_that_both_languages_read_alike_is_taken(matcher: str | None) -> None:
    """SES-36."""
    assert hook("PreToolUse", matcher)


@pytest.mark.parametrize("matcher", ["[", "(", "*a", "a**", "(?<=a+)b", "[]"])
def test_what_is_no_regular_expression_is_an_error_where_it_is_defined(matcher: str) -> None:
    """SES-37, SES-F13."""
    with pytest.raises(re.error):
        hook("PreToolUse", matcher)


@pytest.mark.parametrize("matcher", ["(?P<a>b)", "(?i)bash", "a++", r"\ABash", r"Bash\Z", "(?>a)", "a{,3}", "(?#a)b"])
def test_what_javascript_reads_in_another_way_is_an_error(matcher: str) -> None:
    """SES-37: or it would never match, in silence."""
    with pytest.raises(ValueError, match="means something else or nothing"):
        hook("PreToolUse", matcher)


@pytest.mark.parametrize("matcher", [r"[(?P<]x", r"\(\?P", r"a\++", "[*+]+", r"\\A", "(?!a)b", "(?:a|b)c", "(?<!a)b."])
def test_what_only_looks_like_it_is_not(matcher: str) -> None:
    assert hook("PreToolUse", matcher)


@pytest.mark.parametrize("matcher", ["|", " , "])
def test_a_matcher_that_names_nothing_is_refused(matcher: str) -> None:
    with pytest.raises(ValueError, match="names nothing"):
        hook("PreToolUse", matcher)


def test_a_matcher_where_there_is_nothing_to_match_is_refused() -> None:
    """The CLI would ignore it, and run the hook each time."""
    with pytest.raises(ValueError, match="Stop has nothing that a matcher could match"):
        hook("Stop", "Bash")
    with pytest.raises(re.error):
        hook("FileChanged", "a, b[")
