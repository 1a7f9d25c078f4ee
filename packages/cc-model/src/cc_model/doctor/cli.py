"""Questions to a Claude Code CLI: version and login.

Each raises `OSError` if the CLI cannot be run, does not answer, or prints nothing.
"""

import asyncio
import json
from asyncio.subprocess import DEVNULL, PIPE
from typing import Any, cast

# Both answers take some 20 ms; the limit allows for loading the program from a slow disk.
_ANSWER_SECONDS = 20.0


async def version_of(cli: str) -> str:
    """Return the version that the CLI reports."""
    return await _run(cli, "--version")


async def login_of(cli: str) -> str | None:
    """Describe the login and its end, without secrets; None if there is no login.

    Raises:
        ValueError: The answer is not a login status.
    """
    answer = json.loads(await _run(cli, "auth", "status", "--json"))
    if not isinstance(answer, dict):
        raise ValueError(f"`claude auth status --json` printed no object: {answer!r}")
    status = cast("dict[str, Any]", answer)
    if not status.get("loggedIn"):
        return None
    source = f" from {status['apiKeySource']}" if status.get("apiKeySource") else ""
    end = f", ends {status['loginExpiresAt']}" if status.get("loginExpiresAt") else ""
    return f"{status.get('authMethod')}{source}, provider {status.get('apiProvider')}{end}"


async def _run(cli: str, *arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(cli, *arguments, stdin=DEVNULL, stdout=PIPE, stderr=PIPE)
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            output, errors = await process.communicate()
    except TimeoutError as error:
        raise OSError(f"no answer within {_ANSWER_SECONDS:g} s") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    text = output.decode(errors="replace").strip()
    if not text:
        reason = next(iter(errors.decode(errors="replace").strip().splitlines()), "")
        failure = f"`{' '.join(arguments)}` printed nothing and ended with status {process.returncode}"
        raise OSError(f"{failure}: {reason}" if reason else failure)
    return text
