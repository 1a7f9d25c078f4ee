"""Files and folders that only this user can read, from their first moment.

They are regular files of this user, opened without following links and without waiting, with mode 0600 whatever the
umask. Content is written whole or not at all. An error is an `OSError`.
"""

import errno
import os
import stat
from contextlib import suppress

_MODE = 0o600
# On Windows, where a profile's folders are private, these do not exist. Opening a named pipe would wait.
_SAFE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def open_private(path: str | os.PathLike[str], flags: int) -> int:
    """Open a file of this user, which `O_CREAT` creates, and return its descriptor; if not just read, make it private.

    A file that is only read must not be writable by others.
    """
    descriptor = os.open(path, flags | _SAFE, _MODE)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
        if os.name == "posix":
            if status.st_uid != os.geteuid():
                raise PermissionError(errno.EPERM, "the file of another user", os.fspath(path))
            if flags & (os.O_WRONLY | os.O_RDWR):
                if stat.S_IMODE(status.st_mode) != _MODE:
                    os.fchmod(descriptor, _MODE)
            elif status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise PermissionError(errno.EPERM, "writable by other users", os.fspath(path))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def make_private_folder(path: str | os.PathLike[str]) -> None:
    """Create a folder and its missing parents, each for this user alone."""
    folder = os.path.abspath(path)
    if not os.path.isdir(folder):
        make_private_folder(os.path.dirname(folder))
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)


def write_private(path: str | os.PathLike[str], content: bytes, *, is_new: bool = False) -> None:
    """Write a file, and create its folder; with `is_new` raise `FileExistsError` if the file exists."""
    folder = os.path.dirname(os.path.abspath(path))
    make_private_folder(folder)
    # Written to a new file, which is then renamed: there is never a partial file, and no writer disturbs another.
    temporary = f"{os.fspath(path)}.{os.urandom(6).hex()}.part"
    descriptor = open_private(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        if is_new:
            _rename_new(temporary, path)
        else:
            os.replace(temporary, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


def _rename_new(temporary: str, path: str | os.PathLike[str]) -> None:
    try:
        os.link(temporary, path)  # creation and check in one step
    except FileExistsError:
        raise
    except (OSError, AttributeError):  # a file system without hard links
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, "the file exists", os.fspath(path)) from None
        os.replace(temporary, path)
