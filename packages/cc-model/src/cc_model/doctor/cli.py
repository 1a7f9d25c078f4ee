"""The answers of a Claude Code CLI about itself: its version, and its login."""

import asyncio
import json
from typing import Any, cast

__all__ = ["login_of", "version_of"]

# Both answers take some hundredths of a second; this is for a machine that has to read the program from a slow disk.
_ANSWER_SECONDS = 20.0


async def version_of(cli: str) -> str:
    """The version that it tells.

    Raises:
        OSError: It cannot be run, or does not answer.
    """
    return (await _run(cli, "--version")).strip()


async def login_of(cli: str) -> str | None:
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


async def _run(cli: str, *arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        cli,
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
