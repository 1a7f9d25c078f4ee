"""Files that one process owns: they appear private, are known again by their inode, and are removed by their owner.

It knows paths, descriptors and locks, and nothing of tools or sessions.
"""

import os
import weakref
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from . import lock
from .constants import SOCKET_PERMISSIONS
from .errors import SocketPathError

__all__ = ["LockedFile", "OwnedPath"]

# A cleaner that finds a new file before its lock takes it for a leftover. It would have to come each time.
_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class OwnedPath:
    """A path and the inode that this process put there."""

    path: Path
    device: int
    inode: int

    @classmethod
    def found(cls, path: Path) -> Self:
        """Take what lies at the path, the link itself if it is one."""
        at = path.lstat()
        return cls(path, at.st_dev, at.st_ino)

    def remove(self) -> None:
        """Remove the file, if it is still there and still this one."""
        with suppress(FileNotFoundError):
            if OwnedPath.found(self.path) == self:
                self.path.unlink()


class LockedFile:
    """A new file of mode 0o600 that is locked as long as its owner lives.

    Args:
        path: Where; nothing may be there yet.
        content: What it holds.

    Raises:
        SocketPathError: Something is in the way, be it a symbolic link.
        OSError: The folder is missing, closed or full.
    """

    def __init__(self, path: Path, content: bytes) -> None:
        self._fd: int | None = _create_locked(path)
        try:
            self._owned = OwnedPath.found(path)
            _write_all(self._fd, content)
        except BaseException:
            path.unlink(missing_ok=True)
            self.release()
            raise
        _held.add(self)

    def unlink(self) -> None:
        """Remove the file. It stays locked."""
        self._owned.remove()

    def release(self) -> None:
        """Let go of the lock. Allowed more than once."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)
        _held.discard(self)


# A lock belongs to the open file, and a forked child has it open too. It would keep a dead parent's file owned.
_held: "weakref.WeakSet[LockedFile]" = weakref.WeakSet()


def _release_in_child() -> None:
    for file in list(_held):
        file.release()


os.register_at_fork(after_in_child=_release_in_child)


def _create_locked(path: Path) -> int:
    for _ in range(_ATTEMPTS):
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, SOCKET_PERMISSIONS)
        except FileExistsError as error:
            raise SocketPathError(path=str(path), reason="Something is in the way of the schema file") from error
        try:
            os.fchmod(fd, SOCKET_PERMISSIONS)  # a mask may have taken away more
            lock.own(fd)
        except BaseException:  # a file system without locks
            path.unlink(missing_ok=True)
            os.close(fd)
            raise
        if os.fstat(fd).st_nlink:
            return fd
        os.close(fd)
    raise SocketPathError(path=str(path), reason=f"The schema file was removed {_ATTEMPTS} times while it was made")


def _write_all(fd: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(fd, rest) :]
