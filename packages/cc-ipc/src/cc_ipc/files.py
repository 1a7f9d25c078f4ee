"""Files that a process owns: private from the start, identified by inode, and removed by the owner.

`remove_leftovers` removes the files of dead owners, and never a file with a living owner. A session socket and schema
file carry the same id; the session is alive if the schema file is locked or the socket accepts a connection.
"""

import logging
import os
import stat
import sys
import weakref
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cc_ipc_bridge import lock
from cc_ipc_bridge.constants import (
    SCHEMA_FILE_PREFIX,
    SCHEMA_FILE_SUFFIX,
    SOCKET_FILE_PREFIX,
    SOCKET_FILE_SUFFIX,
    SOCKET_PERMISSIONS,
    WindowsUnsupportedError,
)

from .errors import SocketPathError
from .sockets import is_dead_socket, own_kind

_log = logging.getLogger("cc_ipc")

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
    """A new file with mode 0o600, locked as long as the owner lives. The path must not exist, not even as a link."""

    def __init__(self, path: Path, content: bytes) -> None:
        self._fd: int | None = _create_locked(path)
        try:
            self._owned = OwnedPath.at(path)
            with open(self._fd, "wb", closefd=False) as file:
                file.write(content)
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


def socket_file_name(session_id: str) -> str:
    """Return the file name for a session socket."""
    return f"{SOCKET_FILE_PREFIX}{session_id}{SOCKET_FILE_SUFFIX}"


def schema_file_name(session_id: str) -> str:
    """Return the file name for a session's schemas."""
    return f"{SCHEMA_FILE_PREFIX}{session_id}{SCHEMA_FILE_SUFFIX}"


def remove_leftovers(folders: Iterable[Path]) -> list[Path]:
    """Remove sockets and schema files without a living owner from the folders, and return the removed paths.

    Only this user's regular files and sockets are considered. Files that cannot be removed are skipped.
    """
    paths: list[Path] = []
    for folder in dict.fromkeys(folders):
        for session_id in sorted(_session_ids(folder)):
            paths += _remove_if_dead(folder / socket_file_name(session_id), folder / schema_file_name(session_id))
    if paths:
        _log.info("Removed files of dead owners: %s", ", ".join(map(str, paths)))
    return paths


def _session_ids(folder: Path) -> set[str]:
    ids: set[str] = set()
    with suppress(OSError):
        for name in os.listdir(folder):
            # The longer prefix first: it starts with the shorter one.
            if name.startswith(SCHEMA_FILE_PREFIX) and name.endswith(SCHEMA_FILE_SUFFIX):
                ids.add(name[len(SCHEMA_FILE_PREFIX) : -len(SCHEMA_FILE_SUFFIX)])
            elif name.startswith(SOCKET_FILE_PREFIX) and name.endswith(SOCKET_FILE_SUFFIX):
                ids.add(name[len(SOCKET_FILE_PREFIX) : -len(SOCKET_FILE_SUFFIX)])
    return ids


def _remove_if_dead(socket_path: Path, schema_path: Path) -> list[Path]:
    # The socket is checked first. A session locks the schema file before it creates the socket, so a socket that exists
    # now with a schema file that is not locked afterwards does not belong to a session that is just starting.
    socket_paths = [socket_path] if own_kind(socket_path) in (stat.S_IFSOCK, stat.S_IFREG) else []
    try:
        fd = lock.open_own_file(schema_path)
    except OSError:  # a server without a session, an incomplete leftover, or another user's file
        return _unlink_unless_listening(socket_paths)
    try:
        # Locked until both are removed: an owner that is about to lock a new file waits, and then notices the removal.
        return _unlink_unless_listening([*socket_paths, schema_path]) if lock.try_acquire_shared(fd) else []
    finally:
        os.close(fd)


def _unlink_unless_listening(paths: list[Path]) -> list[Path]:
    if any(path.is_socket() and not is_dead_socket(path) for path in paths):
        return []
    removed: list[Path] = []
    for path in paths:
        with suppress(OSError):
            path.unlink()
            removed.append(path)
    return removed
