"""Names and paths are checked where an agent is built, before its first run."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cc_model import ClaudeCodeModel, ClaudeCodeProvider, claude_code
from cc_types import CLIConnectionError, CLINotFoundError


@pytest.mark.parametrize("create", [ClaudeCodeModel, claude_code])
@pytest.mark.parametrize("provider", ["anthropic", object()])
def test_another_provider_is_refused(create: Callable[..., object], provider: object) -> None:
    """MODEL-100"""
    with pytest.raises(TypeError, match="must be a ClaudeCodeProvider, not"):
        create(provider=provider)


def test_names_of_tools_and_skills_are_checked() -> None:
    """MODEL-100"""
    with pytest.raises(ValueError, match=r"write tools=\['Read'\]"):
        claude_code(tools="Read")
    with pytest.raises(ValueError, match=r"write skills=\['pdf'\]"):
        claude_code(skills="pdf")
    with pytest.raises(ValueError, match="did you mean 'Read'"):
        claude_code(tools=["Raed"])


def test_paths_are_checked(tmp_path: Path) -> None:
    """MODEL-100"""
    nowhere = tmp_path / "nowhere"
    with pytest.raises(CLIConnectionError, match=r"cwd=.*nowhere"):
        claude_code(tools=["Read"], cwd=nowhere)
    with pytest.raises(CLIConnectionError, match=r"cwd=.*nowhere"):
        ClaudeCodeProvider(cwd=nowhere)
    with pytest.raises(CLINotFoundError, match="nowhere"):
        ClaudeCodeProvider(cli_path=nowhere)
