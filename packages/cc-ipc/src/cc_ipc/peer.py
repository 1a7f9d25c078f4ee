"""Who is at the other end of a Unix socket, as the kernel tells it.

The mode of a socket file keeps strangers out. This is the second lock: it also holds where a file was replaced, or its
mode changed. It knows sockets and nothing of what travels on them. The bridge process loads it.
"""

from __future__ import annotations

import os
import socket
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class PeerSocket(Protocol):
        """What is asked of a socket here; asyncio's wrapper has it as well."""

        def getsockopt(self, level: int, optname: int, buflen: int, /) -> bytes:
            """Return a socket option as bytes."""
            ...


__all__ = ["is_own_peer", "peer_uid"]

# Linux: `struct ucred {pid, uid, gid}` of `int`s. BSD and macOS: `struct xucred`, which begins `{version, uid, …}`.
_UCRED_SIZE = 12
_XUCRED_SIZE = 76
_SOL_LOCAL = 0
_LOCAL_PEERCRED = 1
_UID = slice(4, 8)

_HAS_UCRED = hasattr(socket, "SO_PEERCRED")


def peer_uid(sock: PeerSocket) -> int:
    """Return the user id of the process at the other end of a connected Unix socket.

    Raises:
        OSError: The socket is not connected, or the platform does not tell.
    """
    if _HAS_UCRED:
        credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED_SIZE)
    else:
        credentials = sock.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED_SIZE)
    return int.from_bytes(credentials[_UID], sys.byteorder)


def is_own_peer(sock: PeerSocket) -> bool:
    """Return whether the process at the other end runs as this one's user; not even root is an exception."""
    try:
        return peer_uid(sock) == os.geteuid()
    except OSError:
        return False
