"""What the Claude Code CLI says of itself: where it is, its version, and who is logged in."""

import asyncio
import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import claude_agent_sdk

__all__ = ["CLI", "find_cli", "login_of", "version_of"]

# Both answers take some hundredths of a second; this is for a machine that has to read the program from a slow disk.
_ANSWER_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class CLI:
    """A Claude Code CLI."""

    path: str
    is_bundled: bool
    """Whether it is the one that the installed SDK brings."""


def find_cli(path: str | None) -> CLI | None:
    """The CLI that sessions would start: that at `path`, else the SDK's own, else the one on PATH; None without any."""
    bundled = (
        Path(claude_agent_sdk.__file__).parent / "_bundled" / ("claude.exe" if sys.platform == "win32" else "claude")
    )
    found = path or (str(bundled) if bundled.is_file() else shutil.which("claude"))
    return None if found is None else CLI(found, found == str(bundled))


async def version_of(cli: CLI) -> str:
    """The version that it tells.

    Raises:
        OSError: It cannot be run, or does not answer.
    """
    return (await _run(cli, "--version")).strip()


async def login_of(cli: CLI) -> str | None:
    """How it is logged in, in words; None if it is not. No secret is told.

    Raises:
        OSError: It cannot be run, or does not answer.
        ValueError: It answers something else.
    """
    told = json.loads(await _run(cli, "auth", "status", "--json"))
    if not isinstance(told, dict):
        raise ValueError("not the answer of `claude auth status`")
    status = cast("dict[str, Any]", told)
    if not status.get("loggedIn"):
        return None
    source = f" from {status['apiKeySource']}" if status.get("apiKeySource") else ""
    return f"{status.get('authMethod')}{source}, provider {status.get('apiProvider')}"


async def _run(cli: CLI, *arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        cli.path,
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            output, _ = await process.communicate()
    except TimeoutError as error:
        raise OSError(f"no answer within {_ANSWER_SECONDS:g} s") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return output.decode(errors="replace")
