"""The comparison of two CLIs finds what differs, and what this project needs of a CLI."""

from pathlib import Path

import pytest

from cc_session import sealed_options
from cc_session.internals import bundled_cli
from compare_clis import in_the_program, page


def test_a_page_has_a_row_for_each_difference_with_the_places_that_mention_it() -> None:
    before = {"options": {"--bare": "", "--gone-option": ""}, "texts": {"status 400": "a\nb"}}
    after = {"options": {"--bare": "", "--no-session-persistence": ""}, "texts": {"status 400": "c|d"}}
    assert page("1", "2", before, after) == [
        "# claude-agent-sdk 1 and 2",
        "",
        "## Options: 2",
        "",
        "|  | name | before | after | mentioned in |",
        "| --- | --- | --- | --- | --- |",
        "| gone | `--gone-option` |  |  |  |",
        "| new | `--no-session-persistence` |  |  |  |",
        "",
        "## Texts: 1",
        "",
        "|  | name | before | after | mentioned in |",
        "| --- | --- | --- | --- | --- |",
        "| changed | `status 400` | a b | c\\|d |  |",
    ]
    assert page("1", "2", after, after) == ["# claude-agent-sdk 1 and 2"]


@pytest.mark.slow
def test_the_program_text_has_the_names_that_this_project_uses() -> None:
    """Otherwise the comparison would not notice that one has gone."""
    found = in_the_program(Path(bundled_cli()))
    options = sealed_options(env={"ANTHROPIC_API_KEY": "key"})
    variables = found["environment variables"]
    assert {"CLAUDE_CODE_EXTRA_BODY", *options.env} <= variables.keys()
    some = ("CLAUDE_CODE_MAX_RETRIES", "CLAUDE_CODE_REMOTE", "CLAUDE_CODE_SHELL", "ANTHROPIC_BASE_URL")
    assert [variables[name] for name in some] == ["set", "cleared", "passed", "passed"]
    assert {f"--{name}" for name in options.extra_args} <= found["options"].keys()
    assert {"initialize", "interrupt", "set_model", "mcp_set_servers"} <= found["control messages and events"].keys()
