"""A policy's decisions on a call, without a CLI."""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cc_session import Policy, Rule


def says(policy: Policy, tool: str, **input: Any) -> str:
    return policy.verdict(tool, input).behavior


@given(st.permutations(["allow", "ask", "deny"]), st.sampled_from(["pass", "allow", "ask", "deny"]))
def test_deny_wins_over_ask_and_ask_over_allow_wherever_they_stand(order: list[Any], default: Any) -> None:
    """SES-45."""
    policy = Policy([Rule("Bash", behavior) for behavior in order], default=default)
    assert says(policy, "Bash") == "deny"

    policy = Policy([Rule("Bash", behavior) for behavior in order if behavior != "deny"], default=default)
    assert says(policy, "Bash") == "ask"

    policy = Policy([Rule("Bash", "allow")], default=default)
    assert (says(policy, "Bash"), says(policy, "Read")) == ("allow", default)


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("Bash", ["Bash"], ["Bas", "Bashful", "bash", "mcp__Bash__Bash"]),
        ("mcp__git-hub__*", ["mcp__git-hub__a", "mcp__git-hub__"], ["mcp__git", "mcp__git-hub2__a"]),
        ("mcp__*__write", ["mcp__a__write", "mcp__a__b__write"], ["mcp__a__write2", "write"]),
        ("*", ["Bash", "mcp__a__b", ""], []),
        ("*Edit", ["NotebookEdit", "Edit"], ["Edits"]),
        (re.compile("Edit|Write"), ["Edit", "Write"], ["NotebookEdit", "Writer", "EditWrite"]),
        (re.compile("(?i)bash"), ["Bash", "bash"], ["bashful"]),
        ("Task", ["Agent"], ["Task"]),
    ],
)
def test_a_rule_matches_whole_names(pattern: Any, matching: list[str], others: list[str]) -> None:
    """SES-46."""
    policy = Policy([Rule(pattern, "deny")])
    assert {says(policy, tool) for tool in matching} == {"deny"}
    assert {says(policy, tool) for tool in others} <= {"pass"}


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("Bash(git *)", "for a condition on a command or a path"),
        ("Edit|Write", "is not a tool name"),
        ("mcp__.*", "for a regular expression"),
        ("", "is not a tool name"),
        ("bash", "the tool is called 'Bash'"),
        ("WEBFETCH", "the tool is called 'WebFetch'"),
    ],
)
def test_a_rule_that_would_match_nothing_is_refused(tool: str, words: str) -> None:
    """SES-46: a deny that misses the tool would have no effect."""
    with pytest.raises(ValueError, match=words):
        Rule(tool, "deny")


def test_other_invalid_rules_are_refused() -> None:
    wrong: Any = "forbid"

    async def predicate(input: Mapping[str, Any]) -> bool:
        return False

    with pytest.raises(ValueError, match="can 'allow', 'ask' or 'deny'"):
        Rule("Bash", wrong)
    with pytest.raises(ValueError, match="the default is"):
        Policy(default=wrong)
    with pytest.raises(TypeError, match="is not a coroutine function"):
        Rule("Bash", "deny", when=predicate)
    with pytest.raises(TypeError, match="a sequence of Rule"):
        Policy(wrong)
    for seconds in (0, -1, float("nan")):
        with pytest.raises(ValueError):
            Policy(timeout=seconds)


@pytest.mark.parametrize("behavior", ["allow", "ask", "deny"])
def test_a_predicate_that_raises_denies(behavior: Any) -> None:
    """SES-49: for any rule, and any other decision."""

    async def later() -> bool:
        return True

    pending = later()
    predicates: list[Callable[[Mapping[str, Any]], object]] = [lambda input: input["missing"], lambda input: pending]
    for when in predicates:
        policy = Policy([Rule("*", "allow"), Rule("Bash", behavior, when=when)])
        expected = "allow" if behavior == "allow" else "deny"  # an unconditional allow comes first
        assert says(policy, "Bash") == expected
        assert says(Policy([Rule("Bash", behavior, when=when)], default="allow"), "Bash") == "deny"
    pending.close()


WRITERS = ("Write", "Edit", "MultiEdit")
OTHERS = (
    "Agent", "Bash", "CronCreate", "EnterWorktree", "Later", "Monitor", "PowerShell", "ReadMcpResourceTool",
    "SendMessage", "Skill", "Task", "WebFetch", "WebSearch", "Workflow", "mcp__a__read",
)  # fmt: skip


def test_read_only_reads_and_does_nothing_else() -> None:
    """SES-51: unknown tools are denied."""
    policy = Policy.read_only()
    assert {says(policy, tool, file_path="/etc/hostname") for tool in ("Read", "Glob", "Grep")} == {"allow"}
    assert {says(policy, tool, file_path="/etc/hostname") for tool in (*WRITERS, "NotebookEdit", *OTHERS)} == {"deny"}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder with links in it, and a neighbour."""
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    (tmp_path / "work-2").mkdir()
    (tmp_path / "outside").write_text("")
    (work / "inside").write_text("")
    (work / "to-file").symlink_to(tmp_path / "outside")
    (work / "to-folder").symlink_to(tmp_path)
    (work / "to-nothing").symlink_to(tmp_path / "not-there-yet")
    (work / "to-inside").symlink_to(work / "inside")
    (work / "sub" / "up").symlink_to("../..")
    (tmp_path / "link-to-work").symlink_to(work)
    return work


INSIDE = ["file", "inside", "sub/file", "new/deeply/file", "to-inside", "sub/../file", "./file", ".github/x", "..file"]
OUTSIDE = [
    "", ".", "..", "../outside", "../work-2/file", "sub/../../outside", "to-file", "to-folder/file", "to-nothing",
    "sub/up/outside", "to-folder/../file", "sub/up/../file", "/etc/passwd", "to-folder/work/../outside",
    ".git/hooks/pre-commit", ".claude/settings.json", "sub/.git/config", ".GIT/config",
]  # fmt: skip


@pytest.mark.parametrize("through_a_link", [True, False])
def test_workspace_write_writes_below_the_folder_and_nowhere_else(work: Path, through_a_link: bool) -> None:
    """SES-51: links followed and `..` resolved, both as the CLI does and as the system does."""
    policy = Policy.workspace_write(work.parent / "link-to-work" if through_a_link else work)

    for tool in WRITERS:
        for path in INSIDE:
            assert says(policy, tool, file_path=os.path.join(work, path)) == "allow", path
        for path in OUTSIDE:
            assert says(policy, tool, file_path=os.path.join(work, path)) == "deny", path
    assert says(policy, "NotebookEdit", notebook_path=f"{work}/a.ipynb", file_path="/etc/passwd") == "allow"
    assert says(policy, "NotebookEdit", notebook_path="/etc/a.ipynb", file_path=f"{work}/a.ipynb") == "deny"


def test_workspace_write_knows_no_paths_but_absolute_ones(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SES-51: the CLI resolves a relative path."""
    monkeypatch.chdir(work)
    policy = Policy.workspace_write(work)
    (work / "caf\u00e9").symlink_to("/etc/passwd")
    ways = [f"{work}/to-file ", f"{work}/to-file\ufeff", f"{work}/to-file\u3000", f"{work}/cafe\u0301"]
    for path in ("file", "~/file", " /etc/passwd", "\ufeff/etc/passwd", f"{work}/a\0b", None, 3, ["file"], *ways):
        assert says(policy, "Write", file_path=path) == "deny"
    assert says(policy, "Write") == "deny"


def test_workspace_write_denies_other_tools_and_takes_the_decision_on_shells(work: Path) -> None:
    """SES-51."""
    policy = Policy.workspace_write(work)
    assert {says(policy, tool, file_path=f"{work}/file", command="ls") for tool in OTHERS} == {"deny"}
    assert says(policy, "Read", file_path="/etc/passwd") == "allow"
    behaviors: list[Any] = ["allow", "ask", "deny"]
    for behavior in behaviors:
        policy = Policy.workspace_write(work, shell=behavior)
        assert {says(policy, tool, command="ls") for tool in ("Bash", "PowerShell", "Monitor")} == {behavior}
        assert says(policy, "Write", file_path="/etc/passwd") == "deny"


def test_a_workspace_must_be_an_existing_folder_and_stays_the_same(work: Path) -> None:
    """SES-51: a link to it that is changed later does not take it along."""
    with pytest.raises(FileNotFoundError):
        Policy.workspace_write(work / "missing")
    with pytest.raises(NotADirectoryError):
        Policy.workspace_write(work / "inside")

    link = work.parent / "link-to-work"
    policy = Policy.workspace_write(link)
    link.unlink()
    link.symlink_to("/etc")

    assert says(policy, "Write", file_path=f"{link}/passwd") == "deny"
    assert says(policy, "Write", file_path=f"{work}/file") == "allow"
