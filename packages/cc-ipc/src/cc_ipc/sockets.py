"""Listening sockets that no other user can reach, from the first moment on.

A socket never replaces an existing file, except a dead socket that the same user's server left.
"""

import errno
import os
import socket
import stat
import sys
import weakref
from pathlib import Path

from cc_ipc_bridge.constants import SOCKET_PERMISSIONS, WindowsUnsupportedError

from .errors import SocketPathError

_IS_LINUX: bool = sys.platform.startswith("linux")

# `sun_path` is a fixed array that ends with a zero byte: 108 bytes on Linux, 104 on BSD and macOS.
MAX_SOCKET_PATH: int = 107 if _IS_LINUX else 103
"""Longest socket path on this platform, in bytes."""

# Each parallel call connects, and a handler that blocks the event loop delays `accept`.
BACKLOG: int = 128
"""How many connections can wait for `accept`."""


def fits_socket_path(path: Path) -> bool:
    """Return true if the path is short enough for a socket on this platform."""
    return len(os.fsencode(path)) <= MAX_SOCKET_PATH


def listen_privately(path: Path) -> socket.socket:
    """Return a listening socket whose file has mode 0o600 from the first moment on."""
    if sys.platform == "win32":
        raise WindowsUnsupportedError
    if not fits_socket_path(path):
        raise SocketPathError(
            path=str(path),
            reason=f"The path has {len(os.fsencode(path))} bytes; a socket here has at most {MAX_SOCKET_PATH}",
            advice="Choose a shorter path, for example with a shorter TMPDIR.",
        )
    if is_dead_socket(path):
        path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    _listening.add(listener)
    try:
        if _IS_LINUX:  # creates the file with the socket mode, so it never has another mode
            os.fchmod(listener.fileno(), SOCKET_PERMISSIONS)
        # Elsewhere only the umask works, which is process-wide: it is set for a single system call.
        mask = None if _IS_LINUX else os.umask(0o777 & ~SOCKET_PERMISSIONS)
        try:
            listener.bind(str(path))
        except OSError as error:
            # A dangling link exists, too, because the kernel does not follow links here.
            if error.errno == errno.EADDRINUSE:
                raise SocketPathError(path=str(path), reason="The path of the socket exists already") from error
            raise
        finally:
            if mask is not None:
                os.umask(mask)
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


# A forked child inherits the open socket. Without this, clients could still connect to it after the parent's death.
_listening: "weakref.WeakSet[socket.socket]" = weakref.WeakSet()


def _close_in_child() -> None:
    for listener in list(_listening):
        listener.close()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_close_in_child)


def own_kind(path: Path) -> int:
    """Return a path's kind, as in `stat.S_IFMT()`; 0 if it is missing or another user's. Links are not followed."""
    if sys.platform == "win32":
        raise WindowsUnsupportedError
    try:
        status = path.lstat()
    except OSError:
        return 0
    return stat.S_IFMT(status.st_mode) if status.st_uid == os.geteuid() else 0


def is_dead_socket(path: Path) -> bool:
    """Return true if the path is this user's socket without a listening process. Links are not followed."""
    if sys.platform == "win32":
        raise WindowsUnsupportedError
    if own_kind(path) != stat.S_IFSOCK:
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)  # a connection to a living server with a full queue would block
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False
