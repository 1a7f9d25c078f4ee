"""Whether the owner of a file lives, by the lock that it holds on it.

The kernel gives a lock back when its holder ends, however it ends, so a lock tells more than a process id, which may be
somebody else's by now. An owner holds the lock alone; those who ask share it, and never stand in each other's way. The
bridge process loads this module, so it imports little.
"""

from __future__ import annotations

import fcntl
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike

__all__ = ["has_owner", "open_own", "own", "share", "wait_for_end_of_owner"]


def open_own(path: str | PathLike[str]) -> int:
    """Open a regular file of this user's for reading. Links are not followed.

    Raises:
        OSError: There is none.
    """
    # Without O_NONBLOCK, a pipe in the way would have this wait for a writer.
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    found = os.fstat(fd)
    if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
        return fd
    os.close(fd)
    raise PermissionError(f"{os.fspath(path)} is not a regular file of this user")


def own(fd: int) -> None:
    """Take the lock. Others hold it for an instant only, so this does not wait for long."""
    fcntl.flock(fd, fcntl.LOCK_EX)


def share(fd: int) -> bool:
    """Keep a future owner out until the descriptor is closed; return False if there is an owner already."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def has_owner(fd: int) -> bool:
    """Return whether a living process owns the file."""
    if not share(fd):
        return True
    fcntl.flock(fd, fcntl.LOCK_UN)
    return False


def wait_for_end_of_owner(fd: int) -> None:
    """Block until the owner ends or lets go. For a thread of its own: only the process's own end cuts it short."""
    fcntl.flock(fd, fcntl.LOCK_SH)
