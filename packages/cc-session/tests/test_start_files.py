"""Files that a process reads only at its start."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions

from cc_loopback import LoopbackServer
from cc_session import PoolLimits, SessionPool, sealed_options
from cc_session.pool.launch import Launch

FOUND = (
    "project/CLAUDE.md", "CLAUDE.md", "project/CLAUDE.local.md", "project/.mcp.json", "project/.claude/settings.json",
    "project/.claude/settings.local.json", "project/.claude/skills/review/SKILL.md", "project/.claude/agents/helper.md",
    "project/.claude/commands/group/release.md", "project/.claude/rules/names.md", "more/CLAUDE.md", "user/CLAUDE.md",
    "user/settings.json", "user/output-styles/short.md", "plugin/skills/review/SKILL.md", "plugin/hooks/hooks.json",
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


def test_a_folder_that_options_name_does_not_belong_to_the_key(project: Path) -> None:
    """SES-61: a file that a tool writes there must not end the process."""
    options = replace(sealed_options(cwd=project), extra_args={"add-dir": str(project)})
    key = Launch(options=options).key
    write(project / "result.txt", "42")

    assert Launch(options=options).key == key


@pytest.mark.worlds
async def test_a_lease_after_a_change_of_a_file_sends_the_new_text(
    project: Path, options: ClaudeAgentOptions, server: LoopbackServer
) -> None:
    """SES-10, SES-61."""
    env = {**options.env, "CLAUDE_CODE_DISABLE_CLAUDE_MDS": ""}
    options = ClaudeAgentOptions(cwd=project, env=env, tools=[], setting_sources=["project"])
    write(project / "CLAUDE.md", "The first rule.")
    async with SessionPool(options, limits=PoolLimits(size=1, prewarm=0)) as pool:
        await pool.run("One.")
        assert "The first rule." in str(server.requests[-1])
        write(project / "CLAUDE.md", "The second rule.")
        await pool.run("Two.")

    assert "The second rule." in str(server.requests[-1])
