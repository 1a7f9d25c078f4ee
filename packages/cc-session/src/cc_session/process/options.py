"""The CLI to run, and its sealed configuration: a model, with nothing from the machine or the user in it.

A sealed process has no built-in tools, reads no settings, no CLAUDE.md and no MCP configuration, takes prompt text as
data, keeps no transcript, does not think, retry, compact or fall back by itself, and answers a message with exactly
one API call. The caller enables other features of Claude Code by name.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path

import claude_agent_sdk
from claude_agent_sdk import ClaudeAgentOptions

from ..errors import CLIConnectionError, CLINotFoundError
from .login import Login, login_of

__all__ = ["bundled_cli", "check_paths", "cli_advice", "find_cli", "is_sealed", "login_advice", "sealed_options"]

# First bytes of scripts, and of programs for Linux, macOS and Windows, which WSL runs.
_PROGRAM_STARTS = (b"#!", b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"MZ")

# Each variable disables an automatic action that the direct API does not have.
_SEALED_ENV = {
    # Features that only the caller may enable, per request. Without an effort level the CLI sends a default level.
    "CLAUDE_CODE_EFFORT_LEVEL": "unset", "CLAUDE_CODE_DISABLE_THINKING": "1", "CLAUDE_CODE_DISABLE_ULTRATHINK": "1",
    "CLAUDE_CODE_DISABLE_FAST_MODE": "1", "CLAUDE_CODE_DISABLE_ADVISOR_TOOL": "1",
    # Betas that the CLI adds; without the variable, it also repeats a request that got a 400.
    "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS": "1",
    # Retries, fallbacks and repairs belong to the client, which can count and report them.
    "CLAUDE_CODE_MAX_RETRIES": "0", "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
    "CLAUDE_CODE_DISABLE_MODEL_ACCESS_FALLBACK": "1", "CLAUDE_CODE_DISABLE_LEGACY_MODEL_REMAP": "1",
    "CLAUDE_CODE_DISABLE_REFUSAL_RETRY": "1", "CLAUDE_CODE_DISABLE_REFUSAL_FALLBACK": "1",
    "DISABLE_COMPACT": "1", "DISABLE_AUTO_COMPACT": "1",
    # The API decides if a prompt is too long, not an estimate of the CLI. In tokens.
    "CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE": "1000000000",
    # Features that add text to the conversation or read files for it.
    "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1", "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "1",
    "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1", "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS": "1", "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1", "CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING": "1",
    # Unrequested traffic.
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
}  # fmt: skip


def is_sealed(options: ClaudeAgentOptions) -> bool:
    """Return true if `sealed_options()` made the options, even if they have changed since."""
    return _SEALED_ENV.keys() <= options.env.keys()


def sealed_options(
    *,
    system_prompt: str = "",
    model: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    cli_path: str | Path | None = None,
) -> ClaudeAgentOptions:
    """Return the SDK options for a sealed process, the default in this project.

    Args:
        system_prompt: The whole system prompt; Claude Code adds only two short lines.
        model: A model id or an alias such as `"sonnet"`; the CLI's default model if None.
        env: Environment variables, in addition to this process's; they override the sealed ones.
        cwd: The working folder; an empty private folder if None.
        cli_path: The CLI to run; the CLI in the SDK's wheel if None.

    With an API key or a cloud provider the process also runs `--bare`, which omits the CLI's messages about the
    machine. `--bare` cannot use an OAuth login, so then it is not set. It cannot run hooks either: a session with hooks
    or a policy removes it. The built-in tools in it are `Bash`, `Edit` and `Read`, regardless of `tools`.
    """
    extra_args: dict[str, str | None] = {"no-session-persistence": None}
    if login_of(env or {}).is_in_environment:
        extra_args["bare"] = None
    return ClaudeAgentOptions(
        tools=[],
        system_prompt=system_prompt,
        model=model,
        strict_mcp_config=True,
        setting_sources=[],
        permission_mode="dontAsk",
        # A message that calls tools ends the turn: the caller runs the tools, and the CLI makes no second API call.
        max_turns=1,
        include_partial_messages=True,
        env={**_SEALED_ENV, **(env or {})},
        cwd=cwd,
        cli_path=cli_path,
        extra_args=extra_args,
    )


def bundled_cli() -> str:
    """Return the path to the CLI in the SDK's wheel; a wheel for all platforms has none."""
    name = "claude.exe" if sys.platform == "win32" else "claude"
    return str(Path(claude_agent_sdk.__file__).parent / "_bundled" / name)


def find_cli(path: str | None = None) -> str | None:
    """Return the CLI for sessions: `path`, else the SDK's CLI, else `claude` on PATH; None if there is none."""
    bundled = bundled_cli()
    return path or (bundled if Path(bundled).is_file() else shutil.which("claude"))


def check_paths(cwd: str | Path | None, cli_path: str | Path | None) -> None:
    """Check paths for a process before its start. The start itself shows if a program is Claude Code's CLI.

    Raises:
        CLINotFoundError: `cli_path` does not exist.
        CLIConnectionError: `cli_path` cannot be executed, or `cwd` is not a folder.
    """
    if cwd == "" or (cwd is not None and not Path(cwd).is_dir()):
        raise CLIConnectionError(reason=f"cwd={str(cwd)!r} is not a folder", advice=_folder_advice(str(cwd)))
    if cli_path is None:
        return
    program = shutil.which(cli_path)
    if program is None and not Path(cli_path).exists():
        raise CLINotFoundError(path=str(cli_path), advice=cli_advice())
    if program is None or not _is_program(program):
        reason = f"cli_path={str(cli_path)!r} is neither an executable binary nor a script that begins with #!"
        raise CLIConnectionError(reason=reason, advice=cli_advice())


def _folder_advice(cwd: str) -> str:
    if not cwd:
        return "Write '.' for this program's own working folder, or leave cwd out."
    folder = Path(os.path.expanduser(cwd)).absolute()
    names = [folder.name] if folder.is_dir() else [path.name for path in folder.parent.glob("*/")]
    if matches := get_close_matches(folder.name, names, n=1):
        return f"Did you mean {str(folder.parent / matches[0])!r}?"
    return "Create the folder, or set cwd to another one."


def _is_program(path: str) -> bool:
    """Return false if the system would certainly refuse to execute a file."""
    with suppress(OSError), open(path, "rb") as file:
        return sys.platform == "win32" or file.read(4).startswith(_PROGRAM_STARTS)
    return True


def cli_advice() -> str:
    """Return a sentence that names the CLI to run in the place of a wrong one."""
    return (
        f"Leave cli_path out to run {cli}." if (cli := find_cli()) else "Install a claude-agent-sdk wheel with a CLI."
    )


def login_advice(env: Mapping[str, str] | None = None) -> str:
    """Return a sentence that says how to log in, or how to replace a refused login in `env` (over `os.environ`)."""
    cli, login = find_cli() or "claude", Login.SUBSCRIPTION if env is None else login_of(env)
    if login is Login.API_KEY:
        return "The key in ANTHROPIC_API_KEY was refused: replace it, or unset it to use the login of `claude`."
    if login is Login.GATEWAY:
        return "The token in ANTHROPIC_AUTH_TOKEN was refused: replace it."
    if login is not Login.SUBSCRIPTION:
        return "The cloud provider refused its login: renew that."
    for name in ("ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"):
        if env is not None and env.get(name, os.environ.get(name)):
            return f"The token in {name} was refused: run {cli} setup-token, which prints a new one."
    return f"Set ANTHROPIC_API_KEY, or run {cli} in a terminal and type /login."
