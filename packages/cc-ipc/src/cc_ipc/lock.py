"""Whether the owner of a file lives, by the lock that it holds on it.

The kernel gives a lock back when its holder ends, however it ends, so a lock tells more than a process id, which may be
somebody else's by now. An owner holds the lock alone; those who ask share it, and never stand in each other's way. The
bridge process loads this module, so it imports `fcntl` alone.
"""

from __future__ import annotations

import fcntl

__all__ = ["has_owner", "own", "share", "wait_for_end_of_owner"]


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
    """Block until the owner ends or lets go. For a thread of its own: nothing else ends the wait, except the process."""
    fcntl.flock(fd, fcntl.LOCK_SH)
