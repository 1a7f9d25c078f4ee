"""The bridge's main program: arguments, file descriptors, and exit.

The bridge exits when the input ends, which means that the client has exited, and when the schema file owner exits.
"""

from __future__ import annotations

import os
import sys
import threading

from .constants import WindowsUnsupportedError
from .lock import has_owner, open_own_file, wait_for_owner_to_end
from .process import Bridge, Output
from .protocol import McpServer, mcp_tools
from .relay import Relay

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cc_types import JsonValue

_USAGE = "usage: python -m cc_ipc_bridge SOCKET SCHEMA\n"

# A single read takes a pipe's whole content, so that arguments with megabytes take few reads.
_INPUT_BUFFER = 1 << 16


def main(arguments: Sequence[str], leave: Callable[[int], object]) -> int:
    """Run the bridge and return the exit status.

    Args:
        arguments: The paths of the socket and the schema file.
        leave: Callback that exits the process when the parent has exited, while this function still waits for input.
    """
    if len(arguments) != 2:
        sys.stderr.write(_USAGE)
        return 2
    socket_path, schema_path = arguments
    try:
        fd = open_own_file(schema_path)
        with open(fd, "rb", closefd=False) as file:
            tools = mcp_tools(file.read())
    except (OSError, ValueError) as error:
        sys.stderr.write(f"cc_ipc_bridge: the schema file {schema_path} cannot be used: {error}\n")
        return 1
    try:
        return serve_bridge(socket_path, fd, tools, leave)
    except KeyboardInterrupt:
        return 130


def serve_bridge(socket_path: str, schema_fd: int, tools: list[JsonValue], leave: Callable[[int], object]) -> int:
    """Answer the client on stdin and stdout."""
    if sys.platform == "win32":
        raise WindowsUnsupportedError
    stdout = claim_stdout()
    for fd in (0, stdout):
        os.set_blocking(fd, True)  # a host may have made the pipes non-blocking
    bridge = Bridge(McpServer(tools), Relay(socket_path), Output(stdout))

    def end_with_owner() -> None:
        wait_for_owner_to_end(schema_fd)
        bridge.finish()
        leave(0)

    # Without a lock, the file does not show if the owner is alive.
    if has_owner(schema_fd):
        threading.Thread(target=end_with_owner, daemon=True).start()
    with open(0, "rb", buffering=_INPUT_BUFFER, closefd=False) as lines:
        bridge.run(lines)
    return 0


def claim_stdout() -> int:
    """Return a descriptor for the protocol, and redirect stdout to stderr, so that other output cannot mix with it."""
    fd = os.dup(1)
    os.dup2(2, 1)
    return fd
