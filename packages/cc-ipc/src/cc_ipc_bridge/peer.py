"""Peer credentials: the user at the other end of a Unix socket, from the kernel.

The socket file mode excludes other users. This second check works even if the file was replaced or the mode changed.
"""

from __future__ import annotations

import os
import socket
import sys

from .constants import WindowsUnsupportedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class PeerSocket(Protocol):
        """A socket, or asyncio's wrapper."""

        def getsockopt(self, level: int, optname: int, buflen: int, /) -> bytes:
            """Return a socket option as bytes."""
            ...


# Linux: `struct ucred {int pid, uid, gid}`. BSD and macOS: `struct xucred`, which begins with `{version, uid, …}`.
_UCRED_SIZE = 12
_XUCRED_SIZE = 76
_SOL_LOCAL = 0
_LOCAL_PEERCRED = 1
_UID = slice(4, 8)


def peer_uid(sock: PeerSocket) -> int:
    """Return the user id at the other end of a connected Unix socket.

    Raises:
        OSError: The socket is not connected, or the platform does not provide the credentials.
    """
    if sys.platform == "linux":
        credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED_SIZE)
    else:
        credentials = sock.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED_SIZE)
    return int.from_bytes(credentials[_UID], sys.byteorder)


def is_own_peer(sock: PeerSocket) -> bool:
    """Return true if both processes run as the same user. Root is not an exception."""
    if sys.platform == "win32":
        raise WindowsUnsupportedError
    try:
        return peer_uid(sock) == os.geteuid()
    except OSError:
        return False
