"""File locks that show if a file's owner is alive.

The kernel releases a lock when the process ends for any reason. So a lock is more reliable than a process id, which may
have been reused. An owner holds an exclusive lock; processes that test it take a shared lock and never block each
other. The bridge process loads this module, so it imports little.
"""

from __future__ import annotations

import os
import stat
import sys

from .constants import WindowsUnsupportedError

if sys.platform != "win32":
    import fcntl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike


def open_own_file(path: str | PathLike[str]) -> int:
    """Open this user's regular file for reading. Links are not followed.

    Raises:
        OSError: The file does not exist, is not a regular file, or belongs to another user.
    """
    if sys.platform == "win32":
        raise WindowsUnsupportedError
    # Without O_NONBLOCK, opening a named pipe would block until there is a writer.
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    status = os.fstat(fd)
    if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
        return fd
    os.close(fd)
    raise PermissionError(f"{os.fspath(path)} is not a regular file of this user")


def acquire(fd: int) -> None:
    """Take the exclusive lock. This blocks only for an instant, as long as other processes hold shared locks."""
    if sys.platform == "win32":
        raise WindowsUnsupportedError
    fcntl.flock(fd, fcntl.LOCK_EX)


def try_acquire_shared(fd: int) -> bool:
    """Block future owners until the descriptor is closed; return false if the file has an owner already."""
    if sys.platform == "win32":
        raise WindowsUnsupportedError
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def has_owner(fd: int) -> bool:
    """Return true if a living process owns the file."""
    if sys.platform == "win32":
        raise WindowsUnsupportedError
    if not try_acquire_shared(fd):
        return True
    fcntl.flock(fd, fcntl.LOCK_UN)
    return False


def wait_for_owner_to_end(fd: int) -> None:
    """Block until the owner ends or releases the lock. Needs a thread of its own, as it cannot be cancelled."""
    if sys.platform == "win32":
        raise WindowsUnsupportedError
    fcntl.flock(fd, fcntl.LOCK_SH)
