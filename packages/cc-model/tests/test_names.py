"""Names and paths are checked where an agent is built, before its first run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cc_messages import ClaudeCodeTransport
from cc_model import ClaudeCodeModel, ClaudeCodeProvider, RequestLog, claude_code
from cc_session import PoolLimits, Timeouts
from cc_types import CLIConnectionError, CLINotFoundError


@pytest.mark.parametrize("create", [ClaudeCodeModel, claude_code])
@pytest.mark.parametrize("provider", ["anthropic", object()])
def test_another_provider_is_refused(create: Callable[..., object], provider: object) -> None:
    """MODEL-100"""
    with pytest.raises(TypeError, match="must be a ClaudeCodeProvider, not"):
        create(provider=provider)


def test_paths_are_checked(tmp_path: Path) -> None:
    """MODEL-100"""
    nowhere = tmp_path / "nowhere"
    with pytest.raises(CLIConnectionError, match=r"cwd=.*nowhere"):
        claude_code(tools=["Read"], cwd=nowhere)
    with pytest.raises(CLIConnectionError, match=r"cwd=.*nowhere"):
        ClaudeCodeProvider(cwd=nowhere)
    with pytest.raises(CLINotFoundError, match="nowhere"):
        ClaudeCodeProvider(cli_path=nowhere)
    with pytest.raises(CLIConnectionError, match=f"cwd='~' is not a folder. Did you mean '{Path.home()}'"):
        ClaudeCodeProvider(cwd="~")
    with pytest.raises(CLIConnectionError, match=r"cwd='' is not a folder. Write '\.'"):
        claude_code(tools=["Read"], cwd="")
    (tmp_path / "claude").write_text("exec claude")
    (tmp_path / "claude").chmod(0o700)
    with pytest.raises(CLIConnectionError, match=r"neither an executable binary nor a script .*Leave cli_path out"):
        ClaudeCodeProvider(cli_path=tmp_path / "claude")


WRONG_TOOLS: list[tuple[Any, type[Exception], str]] = [
    (["all"], ValueError, r"'all' is not a tool: write each tool, such as tools=\['Read', 'Bash\(git \*\)'\]"),
    (["Bash()"], ValueError, r"'Bash\(\)' is a rule without a pattern: write 'Bash' to allow all calls"),
    ({"Read": True}, TypeError, r"tools=\{'Read': True\} is not a list of names: write tools=\['Read'\]"),
    ([None], TypeError, "tools has None, which is not a name"),
    (b"Read", TypeError, "tools=b'Read' is not a list of names"),
    (None, TypeError, "tools=None is not a list of names"),
]


@pytest.mark.parametrize(("tools", "error", "message"), WRONG_TOOLS)
def test_tools_that_are_not_names_are_refused(tools: Any, error: type[Exception], message: str) -> None:
    """MODEL-170"""
    with pytest.raises(error, match=message):
        claude_code(tools=tools)


WRONG_ARGUMENTS: list[tuple[Callable[..., object], dict[str, Any], type[Exception], str]] = [
    (claude_code, {"tools": ["Read"], "max_turns": 0}, ValueError, "max_turns=0 .*a whole number from 1 on"),
    (claude_code, {"tools": ["Read"], "max_turns": "3"}, TypeError, "max_turns='3' .*a whole number from 1 on"),
    (claude_code, {"tools": ["Read"], "max_turns": True}, TypeError, "max_turns=True"),
    (claude_code, {"tools": ["Read"], "policy": "read"}, TypeError, r"policy='read' .*Policy.read_only\(\)"),
    (claude_code, {"tools": ["Read"], "cwd": 3}, TypeError, "cwd=3 .*write a path"),
    (claude_code, {"tools": ["Read"], "skills": [None]}, TypeError, "skills has None"),
    (ClaudeCodeProvider, {"timeouts": 30}, TypeError, r"timeouts=30 .*write Timeouts\(turn=30\)"),
    (ClaudeCodeProvider, {"max_retries": -1}, ValueError, "max_retries=-1 .*a whole number from 0 on"),
    (ClaudeCodeProvider, {"max_retries": "2"}, TypeError, "max_retries='2'"),
    (ClaudeCodeProvider, {"max_retry_wait": "60"}, TypeError, "max_retry_wait='60' .*a number of seconds"),
    (ClaudeCodeProvider, {"pool": 0}, ValueError, "pool=0 .*from 1 on"),
    (ClaudeCodeProvider, {"pool": "8"}, TypeError, r"pool='8' .*or PoolLimits\(size=8\)"),
    (ClaudeCodeProvider, {"log": 3}, TypeError, "log=3 .*a RequestLog"),
    (ClaudeCodeProvider, {"cli_path": 3}, TypeError, "cli_path=3 .*write a path"),
    (ClaudeCodeProvider, {"on_limit": 3}, TypeError, "on_limit=3 .*write a function"),
    (ClaudeCodeProvider, {"limit_thresholds": 0.8}, TypeError, r"limit_thresholds=0.8 .*\(0.8, 0.95\)"),
    (ClaudeCodeProvider, {"limit_thresholds": "0.8"}, ValueError, "limit_thresholds='0.8'"),
    (ClaudeCodeProvider, {"env": {"A": 1}}, TypeError, r"env\['A'\] is 1: write '1'"),
    (ClaudeCodeProvider, {"env": {"A": None}}, TypeError, r"env\['A'\] is None: write '' to empty"),
    (ClaudeCodeProvider, {"env": {1: "A"}}, TypeError, "env has the name 1: write '1'"),
    (ClaudeCodeProvider, {"env": {"A=secret": "B"}}, ValueError, "env has the name 'A=…': write"),
    (ClaudeCodeProvider, {"env": "A=1"}, TypeError, r"env is of type str: .*\{'TZ': 'UTC'\}"),
    (ClaudeCodeModel, {"model_name": ""}, ValueError, "model_name='' .*'claude-sonnet-5' or 'sonnet'"),
    (ClaudeCodeModel, {"model_name": "claude-code:"}, ValueError, "model_name='claude-code:'"),
    (ClaudeCodeModel, {"model_name": " sonnet"}, ValueError, "model_name=' sonnet' .*write 'sonnet'"),
    (ClaudeCodeModel, {"model_name": "anthropic:claude-sonnet-5"}, ValueError, "write 'claude-sonnet-5'"),
    (ClaudeCodeModel, {"model_name": "openai:gpt-5"}, ValueError, "write a model id or an alias"),
    (ClaudeCodeModel, {"model_name": None}, TypeError, "model_name=None is not a text"),
]


@pytest.mark.parametrize(("create", "arguments", "error", "message"), WRONG_ARGUMENTS)
def test_a_wrong_argument_is_named_with_a_right_one(
    create: Callable[..., object], arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    """MODEL-170"""
    with pytest.raises(error, match=message):
        create(**arguments)


def test_no_text_of_a_variable_is_in_an_error() -> None:
    """MODEL-170"""
    env: Any = {"ANTHROPIC_API_KEY": b"secret"}
    with pytest.raises(TypeError, match=r"env\['ANTHROPIC_API_KEY'\] is of type bytes") as raised:
        ClaudeCodeProvider(env=env)
    assert "secret" not in str(raised.value)


def test_a_provider_over_a_transport_checks_its_arguments() -> None:
    """MODEL-170"""
    with pytest.raises(ValueError, match="max_retries=-1"):
        ClaudeCodeProvider.over(ClaudeCodeTransport(), max_retries=-1)


@pytest.mark.parametrize(
    "name", ["claude-sonnet-5", "sonnet", "opus[1m]", "us.anthropic.claude-opus-4-1-v1:0", "arn:aws:bedrock:x", "gpt:1"]
)
def test_names_for_other_hosts_of_the_models_are_accepted(name: str) -> None:
    """MODEL-170: Amazon Bedrock and gateways have names with a colon."""
    assert ClaudeCodeModel(f"claude-code:{name}").model_name == ClaudeCodeModel(name).model_name == name


def test_all_forms_of_a_right_argument_are_accepted(tmp_path: Path) -> None:
    """MODEL-170"""
    ClaudeCodeProvider(
        pool=PoolLimits(size=1), env={"A": ""}, cwd=tmp_path, timeouts=Timeouts(), max_retries=0, max_retry_wait=None,
        on_limit=print, limit_thresholds=[], log=RequestLog(tmp_path / "log.jsonl"),
    )  # fmt: skip
    claude_code(tools=("Read", "Bash(git *)", "mcp__files__*"), max_turns=1, cwd=str(tmp_path))
