"""Removal of sockets and schema files that dead processes left. Files with a living owner are never removed.

A session's socket and schema file carry the same id. A session is alive if the schema file is locked or the socket
accepts a connection.
"""

import logging
import os
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from cc_ipc_bridge.constants import SCHEMA_FILE_PREFIX, SCHEMA_FILE_SUFFIX, SOCKET_FILE_PREFIX, SOCKET_FILE_SUFFIX
from cc_ipc_bridge.lock import open_own_file, try_acquire_shared
from cc_ipc_bridge.windows import WindowsUnsupportedError

from .sockets import is_dead_socket

_log = logging.getLogger("cc_ipc")


def socket_file_name(session_id: str) -> str:
    """Return the file name for a session's socket."""
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
    socket_paths = [socket_path] if _is_own(socket_path) else []
    try:
        fd = open_own_file(schema_path)
    except OSError:  # a server without a session, an incomplete leftover, or another user's file
        return _unlink_unless_listening(socket_paths)
    try:
        # Locked until both are removed: an owner that is about to lock a new file waits, and then notices the removal.
        return _unlink_unless_listening([*socket_paths, schema_path]) if try_acquire_shared(fd) else []
    finally:
        os.close(fd)


def _unlink_unless_listening(paths: list[Path]) -> list[Path]:
    if any(path.is_socket() and not is_dead_socket(path) for path in paths):
        return []
    return [path for path in paths if _unlink(path)]


def _is_own(path: Path) -> bool:
    if sys.platform == "win32":
        raise WindowsUnsupportedError
    try:
        status = path.lstat()
    except OSError:
        return False
    return status.st_uid == os.geteuid() and (stat.S_ISSOCK(status.st_mode) or stat.S_ISREG(status.st_mode))


def _unlink(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True
