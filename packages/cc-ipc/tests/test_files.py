"""Files and their owners: locks, leftovers, and forked children."""

import os
import socket
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from cc_ipc import sockets
from cc_ipc.errors import SocketPathError
from cc_ipc.files import LockedFile, remove_leftovers, schema_file_name, socket_file_name
from cc_ipc.sockets import MAX_SOCKET_PATH, is_dead_socket, listen_privately
from cc_ipc_bridge import lock

from .conftest import StartChild, StartOwner, raising

if sys.platform == "win32":
    raise pytest.skip.Exception("needs POSIX", allow_module_level=True)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def dead_socket(path: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
    return path


def test_a_locked_file_is_private_under_any_umask(folder: Path) -> None:
    """IPC-D-27."""
    for mask in (0, 0o777):
        path = folder / f"f{mask}"
        before = os.umask(mask)
        try:
            file = LockedFile(path, b"content")
        finally:
            os.umask(before)
        assert (mode(path), path.read_bytes()) == (0o600, b"content")
        file.release()


def test_a_locked_file_has_an_owner_until_it_is_released(folder: Path) -> None:
    path = folder / "f"
    file = LockedFile(path, b"")
    fd = lock.open_own_file(path)
    assert lock.has_owner(fd)
    for _ in range(2):
        file.release()
    assert not lock.has_owner(fd)
    assert path.exists()
    for _ in range(2):
        file.unlink()
    assert not path.exists()
    os.close(fd)


@pytest.mark.parametrize("step", ["cc_ipc.files.open", "cc_ipc_bridge.lock.acquire"])
def test_a_file_that_cannot_be_written_or_locked_is_removed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setattr(step, raising(OSError("not here")), raising=False)  # `open` is a built-in
    with pytest.raises(OSError, match="not here"):
        LockedFile(folder / "f", b"content")
    assert not (folder / "f").exists()


def test_a_file_removed_at_each_attempt_and_an_existing_path_are_errors(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """IPC-D-29."""
    (folder / "link").symlink_to(folder / "elsewhere")
    with pytest.raises(SocketPathError, match="path of the schema file exists already"):
        LockedFile(folder / "link", b"")
    assert not (folder / "elsewhere").exists()

    def clean(fd: int) -> None:
        (folder / "f").unlink()

    monkeypatch.setattr(lock, "acquire", clean)
    with pytest.raises(SocketPathError, match="was removed 20 times"):
        LockedFile(folder / "f", b"")


def test_only_a_regular_file_of_this_user_is_opened(folder: Path) -> None:
    """IPC-D-29: no link, folder, pipe, or missing file."""
    (folder / "f").touch()
    (folder / "link").symlink_to(folder / "f")
    os.mkfifo(folder / "pipe")
    for name in ("link", "pipe", ".", "nothing"):
        with pytest.raises(OSError, match=r"regular file|symbolic link|No such file|symbolic"):
            lock.open_own_file(folder / name)
    os.close(lock.open_own_file(folder / "f"))


def test_a_listening_socket_is_private_from_its_creation_under_any_umask(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """IPC-D-27, IPC-R-06: right after `bind`, for both ways of binding."""
    modes: list[int] = []

    class Watched(socket.socket):
        def bind(self, address: Any, /) -> None:
            super().bind(address)
            modes.append(stat.S_IMODE(os.lstat(address).st_mode))

    monkeypatch.setattr(socket, "socket", Watched)
    before = os.umask(0)
    try:
        for is_linux in (True, False) if sys.platform.startswith("linux") else (False,):
            monkeypatch.setattr(sockets, "_IS_LINUX", is_linux)
            path = folder / f"s{is_linux}"
            listen_privately(path).close()
            assert mode(path) == 0o600
        assert os.umask(0) == 0
    finally:
        os.umask(before)
    assert set(modes) == {0o600}


def test_a_path_too_long_for_the_platform_is_an_error(folder: Path) -> None:
    """IPC-D-31."""
    path = folder / ("a" * MAX_SOCKET_PATH)
    with pytest.raises(SocketPathError, match=f"at most {MAX_SOCKET_PATH}"):
        listen_privately(path)
    with pytest.raises(FileNotFoundError):  # a missing folder remains an OSError
        listen_privately(folder / "missing" / "s")
    longest = folder / ("a" * (MAX_SOCKET_PATH - len(os.fsencode(folder)) - 1))
    listen_privately(longest).close()


def test_a_dead_socket_is_replaced_and_a_living_one_is_not(folder: Path) -> None:
    """IPC-D-30."""
    path = dead_socket(folder / "s")
    assert is_dead_socket(path)
    with listen_privately(path):
        assert not is_dead_socket(path)
        with pytest.raises(SocketPathError):
            listen_privately(path)
    assert is_dead_socket(path)
    assert not is_dead_socket(folder / "nothing")
    (folder / "file").touch()
    assert not is_dead_socket(folder / "file")


def test_a_server_with_a_full_queue_counts_as_alive(folder: Path) -> None:
    path = folder / "s"
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as first:
        listener.bind(str(path))
        listener.listen(0)
        first.connect(str(path))
        assert not is_dead_socket(path)
        assert not is_dead_socket(path)


def test_files_of_living_owners_and_of_other_users_are_kept(folder: Path) -> None:
    """IPC-D-30: an owner with a lock, or with a socket that accepts, is alive."""
    locked = LockedFile(folder / schema_file_name("a"), b"")
    dead_socket(folder / socket_file_name("a"))
    listener = listen_privately(folder / socket_file_name("b"))
    (folder / schema_file_name("b")).touch()
    (folder / "elsewhere").touch()
    (folder / socket_file_name("c")).symlink_to(folder / "elsewhere")
    (folder / schema_file_name("d")).symlink_to(folder / "elsewhere")
    (folder / socket_file_name("e")).mkdir()
    (folder / "claudecode_ipc_notes.txt").touch()
    before = set(folder.iterdir())
    assert remove_leftovers([folder, folder / "missing"]) == []
    assert set(folder.iterdir()) == before
    locked.release()
    listener.close()
    assert len(remove_leftovers([folder])) == 4


def test_a_leftover_that_cannot_be_removed_is_skipped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / schema_file_name("a")).touch()
    monkeypatch.setattr(Path, "unlink", raising(PermissionError()))
    assert remove_leftovers([folder]) == []


def test_the_next_start_removes_the_files_of_a_killed_owner(folder: Path, owner_process: StartOwner) -> None:
    """IPC-P-40, IPC-D-30."""
    first, second = owner_process(), owner_process()
    first.kill()
    assert first.socket_path.exists()
    third = owner_process()
    assert {path.name for path in folder.iterdir()} == {
        path.name for owner in (second, third) for path in (owner.socket_path, owner.schema_path)
    }


FORKING = """
import os, signal, sys
from pathlib import Path
from cc_ipc.files import LockedFile
from cc_ipc.sockets import listen_privately

folder = Path(sys.argv[1])
file, listener = LockedFile(folder / "f", b""), listen_privately(folder / "s")
parent = os.getpid()
if not os.fork():
    print("forked", flush=True)
    os.kill(parent, 9)
    sys.stdin.read()
    os._exit(0)
signal.pause()
"""


def test_a_forked_child_does_not_keep_files_of_its_dead_parent_alive(folder: Path, child_process: StartChild) -> None:
    """IPC-P-40: the child inherits lock and socket, and runs until the input ends."""
    process = child_process([sys.executable, "-c", FORKING, str(folder)])
    assert process.stdout.readline() == b"forked\n"
    process.wait()
    fd = lock.open_own_file(folder / "f")
    assert not lock.has_owner(fd)
    assert is_dead_socket(folder / "s")
    os.close(fd)
    process.stdin.close()
    assert process.stdout.read() == b""  # the child has ended
