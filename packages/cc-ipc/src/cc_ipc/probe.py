"""Startup check for a bridge: run it as an MCP host would, request the tools, and report a failure's cause.

Hosts report little about a server that does not start.
"""

import asyncio
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from tempfile import TemporaryFile

from cc_ipc_bridge.payload import decode_json

from .errors import BridgeStartupError

# A bridge answers within 0.1 s, and even on a loaded machine in a fraction of this time.
_ANSWER_TIMEOUT = 20.0

# A killed process ends at once, unless it is blocked in the kernel, which may last for ever.
_KILL_TIMEOUT = 2.0

_LIST_TOOLS = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'


async def check_bridge(command: Sequence[str]) -> list[str]:
    """Start a bridge, end it again, and return the names of the tools that it lists.

    Args:
        command: The bridge command, such as a started session's `IPCSession.command`.

    Raises:
        BridgeStartupError: The bridge does not start, or does not list tools within 20 seconds.
    """
    with TemporaryFile() as stderr:  # at the time limit, a pipe's content would be lost
        try:
            process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=stderr)
        except OSError as error:
            raise BridgeStartupError(command=command, reason=f"The bridge cannot be started: {error}") from error
        try:
            async with asyncio.timeout(_ANSWER_TIMEOUT):
                # A bridge answers, and exits when the input ends.
                stdout, _ = await process.communicate(_LIST_TOOLS)
            reason = f"The bridge did not list its tools and ended with status {process.returncode}"
        except TimeoutError:
            stdout, reason = b"", f"The bridge did not answer within {_ANSWER_TIMEOUT:g} seconds"
        finally:
            if process.returncode is None:
                process.kill()
                async with asyncio.timeout(_KILL_TIMEOUT):
                    await process.wait()
        names = _tool_names(stdout)
        if names is None:
            stderr.seek(0)
            tail = stderr.read().decode(errors="replace")
            raise BridgeStartupError(command=command, reason=reason, stderr_tail=tail)
    return names


def _tool_names(stdout: bytes) -> list[str] | None:
    """Return the names in a response to `tools/list`, or `None` if the output is something else."""
    try:
        answer = decode_json(stdout)
    except ValueError:
        return None
    result = answer.get("result") if isinstance(answer, dict) else None
    tools = result.get("tools") if isinstance(result, dict) else None
    if not isinstance(tools, list):
        return None
    return [str(tool.get("name")) for tool in tools if isinstance(tool, dict)]
