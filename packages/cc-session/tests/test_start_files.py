"""Files that a process reads only at its start."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from claude_agent_sdk import ClaudeAgentOptions, project_key_for_directory

from cc_session import sealed_options
from cc_session.pool.launch import Launch
from cc_session.pool.start_files import start_files

FOUND = (
    "project/CLAUDE.md", "CLAUDE.md", "project/CLAUDE.local.md", "project/.mcp.json", "project/.claude/settings.json",
    "project/.claude/settings.local.json", "project/.claude/skills/review/SKILL.md", "project/.claude/agents/helper.md",
    "project/.claude/commands/group/release.md", "project/.claude/rules/names.md", "more/CLAUDE.md", "user/CLAUDE.md",
    "user/settings.json", "user/output-styles/short.md", "plugin/skills/review/SKILL.md", "plugin/hooks/hooks.json",
    "project/.git/HEAD", "project/.git/refs/remotes/origin/HEAD", "project/AGENTS.md", "project/.claude/AGENTS.md",
    "project/.claude/workflows/build.js", "user/agents/a/b/helper.md",
)  # fmt: skip


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.mark.parametrize("name", FOUND)
def test_a_file_that_claude_code_finds_belongs_to_the_key(project: Path, name: str) -> None:
    """SES-61: a process keeps what it has read, so another one has to start after a change."""
    root = project.parent
    options = ClaudeAgentOptions(
        cwd=project,
        add_dirs=["../more"],
        plugins=[{"type": "local", "path": "../plugin"}],
        env={"CLAUDE_CONFIG_DIR": str(root / "user")},
    )
    sealed = sealed_options(cwd=project, env=options.env)
    key, sealed_key = Launch(options=options).key, Launch(options=sealed).key
    write(root / name, "One.")
    key_with_file = Launch(options=options).key
    write(root / name, "Another text.")

    assert len({key, key_with_file, Launch(options=options).key}) == 3
    assert Launch(options=sealed).key == sealed_key


@pytest.mark.parametrize(
    "name", ["main/.git/worktrees/other/HEAD", "main/.claude/agents/helper.md", "user/projects/{}/memory/MEMORY.md"]
)
def test_a_worktree_has_the_files_of_its_repository(project: Path, name: str) -> None:
    """SES-61: except the branch."""
    main, env = project.parent / "main", {"CLAUDE_CONFIG_DIR": str(project.parent / "user")}
    options = ClaudeAgentOptions(cwd=project, env=env)
    write(main / ".git/worktrees/other/commondir", "../..")
    write(project / ".git", f"gitdir: {main}/.git/worktrees/other\n")
    key = Launch(options=options).key
    write(project.parent / name.format(project_key_for_directory(main)), "One.")

    assert Launch(options=options).key != key


def test_imported_files_belong_to_the_key(project: Path) -> None:
    """SES-61: also two that import each other."""
    options = ClaudeAgentOptions(cwd=project, setting_sources=["project"])
    write(project / "CLAUDE.md", "See @docs/first.md and @~/none.md")
    write(project / "docs/first.md", "@second.md\n@../CLAUDE.md")
    write(project / "docs/second.md", "One.")
    key = Launch(options=options).key
    assert len(start_files(options)) < 10
    write(project / "docs/second.md", "Another text.")

    assert Launch(options=options).key != key


def test_links_that_form_circles_are_followed_once(project: Path) -> None:
    """SES-61: two circles would have a trillion paths."""
    agents = project / ".claude/agents"
    write(agents / "helper.md", "One.")
    for name in ("here", "again"):
        (agents / name).symlink_to(agents, target_is_directory=True)

    assert len(start_files(ClaudeAgentOptions(cwd=project, setting_sources=["project"]))) < 10


@pytest.mark.parametrize("source", ["user", "local"])
def test_servers_in_the_users_configuration_belong_to_the_key(project: Path, source: Literal["user", "local"]) -> None:
    """SES-61: not the figures beside them, which each process writes."""

    def key_with(**document: Any) -> object:
        write(file, json.dumps(document))
        return Launch(options=options).key

    file = project.parent / "user/.claude.json"
    options = ClaudeAgentOptions(cwd=project, env={"CLAUDE_CONFIG_DIR": str(file.parent)}, setting_sources=[source])
    servers = {"mcpServers": {"db": {"command": "db"}}}
    own = servers if source == "user" else {"projects": {str(project): servers}}
    key = key_with(numStartups=1)

    assert key_with(numStartups=2) == key
    assert key_with(**own) != key
    assert key_with(projects={"/other": servers}) == key


@pytest.mark.parametrize("source", ["user", "project"])
def test_the_users_choices_for_a_project_belong_to_the_key(project: Path, source: Literal["user", "project"]) -> None:
    """SES-61: a server that was switched off in the terminal. Empty choices, which each process writes, are none."""

    def key_with(**choices: object) -> object:
        write(file, json.dumps({"projects": {str(project): choices}}))
        return Launch(options=options).key

    file = project.parent / "user/.claude.json"
    options = ClaudeAgentOptions(cwd=project, env={"CLAUDE_CONFIG_DIR": str(file.parent)}, setting_sources=[source])
    key = key_with()

    assert key_with(allowedTools=[], mcpServers={}, hasTrustDialogAccepted=False, lastCost=1) == key
    assert len({key, key_with(disabledMcpServers=["db"]), key_with(allowedTools=["Bash"])}) == 3


@pytest.mark.parametrize(
    "change",
    [
        {"settings": "named.json"},
        {"mcp_servers": "named.json"},
        {"system_prompt": {"type": "file", "path": "named.json"}},
        {"extra_args": {"append-system-prompt-file": "named.json"}},
    ],
)
def test_a_file_that_options_name_belongs_to_the_key(project: Path, change: dict[str, Any]) -> None:
    """SES-61: relative to the working folder, where Claude Code looks for it."""
    options = replace(sealed_options(cwd=project), **change)
    key = Launch(options=options).key
    write(project / "named.json", "{}")

    assert Launch(options=options).key != key
