"""Whether a bridge starts: run as an MCP host would run it, and asked for its tools.

A host says little about a server that does not start. This says why.
"""

import asyncio
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence

from .errors import BridgeStartupError
from .payload import decode_json

__all__ = ["check_bridge"]

# A bridge answers within some hundredths of a second. A machine under load may take many times that, but not this long.
_ANSWER_TIMEOUT = 20.0

# A killed process is gone at once, unless the kernel holds it; nobody should wait for that.
_KILL_TIMEOUT = 2.0

_LIST_TOOLS = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'


async def check_bridge(command: Sequence[str]) -> list[str]:
    """Start a bridge and end it, and return the names of the tools that it lists.

    Args:
        command: How it is started, such as `IPCSession.command` of a session that is started.

    Raises:
        BridgeStartupError: It does not start, or does not list tools.
    """
    try:
        process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    except OSError as error:
        raise BridgeStartupError(command=command, reason=f"The bridge cannot be started: {error}") from error
    try:
        async with asyncio.timeout(_ANSWER_TIMEOUT):
            # The end of its input ends a bridge, after it has answered.
            stdout, stderr = await process.communicate(_LIST_TOOLS)
    except TimeoutError as error:
        reason = f"The bridge did not answer within {_ANSWER_TIMEOUT:g} seconds"
        raise BridgeStartupError(command=command, reason=reason) from error
    finally:
        await _end(process)
    names = _tool_names(stdout)
    if names is None:
        reason = f"The bridge did not list its tools and ended with status {process.returncode}"
        raise BridgeStartupError(command=command, reason=reason, stderr_tail=stderr.decode(errors="replace"))
    return names


async def _end(process: Process) -> None:
    if process.returncode is None:
        process.kill()
        async with asyncio.timeout(_KILL_TIMEOUT):
            await process.wait()


def _tool_names(stdout: bytes) -> list[str] | None:
    """Return the names in the answer to `tools/list`, or `None` if it is not one."""
    try:
        answer = decode_json(stdout)
    except ValueError:
        return None
    result = answer.get("result") if isinstance(answer, dict) else None
    tools = result.get("tools") if isinstance(result, dict) else None
    if not isinstance(tools, list):
        return None
    return [str(tool.get("name")) for tool in tools if isinstance(tool, dict)]
