"""Files that a process owns: private from the start, identified by inode, and removed by the owner."""

import os
import sys
import weakref
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cc_ipc_bridge import lock
from cc_ipc_bridge.constants import SOCKET_PERMISSIONS
from cc_ipc_bridge.windows import WindowsUnsupportedError

from .errors import SocketPathError

# A cleanup that finds a new file before it is locked removes it as a leftover, but hardly so many times in a row.
_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class OwnedPath:
    """A path and the inode that this process created there."""

    path: Path
    device: int
    inode: int

    @classmethod
    def at(cls, path: Path) -> Self:
        """Return the path with the current inode. Links are not followed."""
        status = path.lstat()
        return cls(path, status.st_dev, status.st_ino)

    def remove(self) -> None:
        """Remove the file if the path still has the same inode."""
        with suppress(FileNotFoundError):
            if OwnedPath.at(self.path) == self:
                self.path.unlink()


class LockedFile:
    """A new file with mode 0o600 that is locked as long as the owner lives.

    Args:
        path: Path, which must not exist yet.
        content: The file's content.

    Raises:
        SocketPathError: The path exists already, for example as a symbolic link.
        OSError: The folder is missing, not writable or full.
    """

    def __init__(self, path: Path, content: bytes) -> None:
        self._fd: int | None = _create_locked(path)
        try:
            self._owned = OwnedPath.at(path)
            _write_all(self._fd, content)
        except BaseException:
            path.unlink(missing_ok=True)
            self.release()
            raise
        _locked_files.add(self)

    def unlink(self) -> None:
        """Remove the file, and keep the lock."""
        self._owned.remove()

    def release(self) -> None:
        """Release the lock. Idempotent."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)
        _locked_files.discard(self)


# A lock belongs to the open file, which a forked child inherits. Without this, the child would keep the lock of a dead
# parent.
_locked_files: "weakref.WeakSet[LockedFile]" = weakref.WeakSet()


def _release_in_child() -> None:
    for file in list(_locked_files):
        file.release()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_release_in_child)


def _create_locked(path: Path) -> int:
    if sys.platform == "win32":
        raise WindowsUnsupportedError
    for _ in range(_ATTEMPTS):
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, SOCKET_PERMISSIONS)
        except FileExistsError as error:
            raise SocketPathError(path=str(path), reason="The path of the schema file exists already") from error
        try:
            os.fchmod(fd, SOCKET_PERMISSIONS)  # the umask may have removed more bits
            lock.acquire(fd)
        except BaseException:  # for example a file system without locks
            path.unlink(missing_ok=True)
            os.close(fd)
            raise
        if os.fstat(fd).st_nlink:
            return fd
        os.close(fd)
    raise SocketPathError(path=str(path), reason=f"The schema file was removed {_ATTEMPTS} times during its creation")


def _write_all(fd: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(fd, rest) :]
