"""Listening sockets that no other user can reach, from the first instant of their existence.

It knows paths and sockets, and nothing of sessions or of what travels. A socket is never put in the place of something
else: what is in the way is refused, except the leftover of a server of the same user that has died.
"""

import errno
import os
import socket
import stat
import sys
import weakref
from pathlib import Path

from .constants import SOCKET_PERMISSIONS
from .errors import SocketPathError

__all__ = ["BACKLOG", "MAX_SOCKET_PATH", "fits_socket_path", "is_dead_socket", "listen_privately"]

_IS_LINUX: bool = sys.platform.startswith("linux")

# `sun_path` is an array of the kernel's, with a zero byte at its end: 108 bytes on Linux, 104 on BSD and macOS.
MAX_SOCKET_PATH: int = 107 if _IS_LINUX else 103
"""Bytes that a socket's path may have on this platform."""

# Each parallel call connects once, and a handler that blocks the event loop delays `accept`.
BACKLOG: int = 128
"""Connections that may wait to be accepted."""


def fits_socket_path(path: Path) -> bool:
    """Return whether the platform takes a socket path of this length."""
    return len(os.fsencode(path)) <= MAX_SOCKET_PATH


def listen_privately(path: Path) -> socket.socket:
    """Return a listening socket at a path, which is its owner's alone (mode 0o600) and never was anything else.

    Raises:
        SocketPathError: The path is too long, or something is in the way, be it a symbolic link.
        OSError: The folder is missing or closed.
    """
    if not fits_socket_path(path):
        raise SocketPathError(
            path=str(path),
            reason=f"The path has {len(os.fsencode(path))} bytes; a socket here has at most {MAX_SOCKET_PATH}",
            advice="Choose a shorter one, by a shorter TMPDIR for example.",
        )
    if is_dead_socket(path):
        path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    _listening.add(listener)
    try:
        _bind(listener, path)
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


# A forked child has the socket open too, and would keep it connectable after its parent's death.
_listening: "weakref.WeakSet[socket.socket]" = weakref.WeakSet()


def _close_in_child() -> None:
    for listener in list(_listening):
        listener.close()


os.register_at_fork(after_in_child=_close_in_child)


def _bind(listener: socket.socket, path: Path) -> None:
    try:
        (_bind_with_mode if _IS_LINUX else _bind_with_mask)(listener, path)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:  # the kernel follows no link here: a dangling one is "in use" too
            raise SocketPathError(path=str(path), reason="Something is in the way of the socket") from error
        raise


def _bind_with_mode(listener: socket.socket, path: Path) -> None:
    # Linux gives the file the mode of the socket it is bound to, so there is no instant with another one.
    os.fchmod(listener.fileno(), SOCKET_PERMISSIONS)
    listener.bind(str(path))


def _bind_with_mask(listener: socket.socket, path: Path) -> None:
    # The mask is the whole process's. Other platforms leave no other way, and it is set for one system call.
    mask = os.umask(0o777 & ~SOCKET_PERMISSIONS)
    try:
        listener.bind(str(path))
    finally:
        os.umask(mask)


def is_dead_socket(path: Path) -> bool:
    """Return whether there is a socket of this user that nobody listens on. Links are not followed."""
    try:
        found = path.lstat()
    except OSError:
        return False
    if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid():
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)  # a server whose queue is full would have us wait; it lives
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False
