"""The bridge as a program: its arguments, its descriptors, and its end.

It ends when its input does, which is when the client has ended, and when the owner of the schema file has.
"""

from __future__ import annotations

import os
import sys
import threading

from ..lock import has_owner, open_own, wait_for_end_of_owner
from .process import Bridge, Output
from .protocol import McpServer
from .relay import Relay
from .tools import mcp_tools, read_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cc_types import JsonValue

__all__ = ["claim_stdout", "main", "serve_bridge"]

_USAGE = "usage: python -m cc_ipc.bridge SOCKET SCHEMA\n"

# One read takes what a pipe holds, so that a call with megabytes of arguments comes in few steps.
_INPUT_BUFFER = 1 << 16


def main(arguments: Sequence[str], leave: Callable[[int], object]) -> int:
    """Run the bridge until it is to end, and return the exit status.

    Args:
        arguments: The socket and the schema file.
        leave: Ends the process when its parent has ended, while this function still waits for input.
    """
    if len(arguments) != 2:
        sys.stderr.write(_USAGE)
        return 2
    socket_path, schema_path = arguments
    try:
        fd = open_own(schema_path)
        tools = mcp_tools(read_all(fd))
    except (OSError, ValueError) as error:
        sys.stderr.write(f"cc_ipc.bridge: the schema file {schema_path} cannot be used: {error}\n")
        return 1
    try:
        return serve_bridge(socket_path, fd, tools, leave)
    except KeyboardInterrupt:
        return 130


def serve_bridge(socket_path: str, schema_fd: int, tools: list[JsonValue], leave: Callable[[int], object]) -> int:
    """Answer the client on stdin and stdout."""
    stdout = claim_stdout()
    for fd in (0, stdout):
        os.set_blocking(fd, True)  # a host may leave its ends of the pipes as it uses them
    bridge = Bridge(McpServer(tools), Relay(socket_path), Output(stdout))

    def end_with_owner() -> None:
        wait_for_end_of_owner(schema_fd)
        bridge.finish()
        leave(0)

    # A file that nobody has locked was made by somebody who does not tell whether he lives.
    if has_owner(schema_fd):
        threading.Thread(target=end_with_owner, daemon=True).start()
    with open(0, "rb", buffering=_INPUT_BUFFER, closefd=False) as lines:
        bridge.run(lines)
    return 0


def claim_stdout() -> int:
    """Return a descriptor for the protocol, and turn stdout to stderr: whatever else prints must not get in between."""
    fd = os.dup(1)
    os.dup2(2, 1)
    return fd
