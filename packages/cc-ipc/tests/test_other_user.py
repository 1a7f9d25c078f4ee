"""Access by another user. These tests change the user of a child process, so they run as root only."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cc_ipc import IPCServer, IPCSession
from cc_ipc.sockets import listen_privately

from .conftest import StartBridge, StartChild, Tools

if sys.platform == "win32":
    raise pytest.skip.Exception("needs POSIX", allow_module_level=True)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the user")

# Another user's attempts, with the outcomes as JSON.
OTHER_USER = """
import json, os, socket, sys

os.setgroups([])
os.setgid(65534)
os.setuid(65534)

def attempt(action):
    try:
        return action()
    except OSError as error:
        return type(error).__name__

def call():
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(sys.argv[1])
        payload = b'{"method":"call_tool","params":{"name":"echo","arguments":{}}}'
        sock.sendall(len(payload).to_bytes(4, "big") + payload)
        return len(sock.recv(1))

def read():
    return open(sys.argv[2]).read()

print(json.dumps([attempt(call), attempt(read)]))
"""


def try_as_another_user(socket_path: Path, schema_path: Path) -> list[object]:
    command = [sys.executable, "-c", OTHER_USER, str(socket_path), str(schema_path)]
    return json.loads(subprocess.run(command, capture_output=True, check=True, timeout=20).stdout)


@pytest.fixture
def open_folder(folder: Path) -> Path:
    """A folder that all users may enter, like the temporary folder."""
    folder.chmod(0o755)
    return folder


async def test_another_user_can_neither_connect_nor_read_the_schema_file(open_folder: Path, tools: Tools) -> None:
    """IPC-P-41, IPC-D-27."""
    async with IPCSession(tools.handlers, tools.schemas, folder=open_folder) as session:
        assert try_as_another_user(session.socket_path, session.schema_path) == ["PermissionError", "PermissionError"]
    assert tools.calls == []


async def test_another_user_who_can_connect_is_refused(
    open_folder: Path, tools: Tools, caplog: pytest.LogCaptureFixture
) -> None:
    """IPC-D-28: the test makes the socket accessible, and the server still checks the peer."""
    import anyio.to_thread

    async with IPCServer(open_folder / "s", tools.handlers) as server:
        server.socket_path.chmod(0o666)
        call, _ = await anyio.to_thread.run_sync(try_as_another_user, server.socket_path, open_folder / "none")
    assert call in (0, "ConnectionResetError", "BrokenPipeError")
    assert tools.calls == []
    assert "Refused a connection from another user" in caplog.text


KNOCKING = """
import os, socket, sys

os.setgroups([])
os.setgid(65534)
os.setuid(65534)
print("ready", flush=True)
entered = 0
while not os.path.exists(sys.argv[1] + "/end"):
    for name in os.listdir(sys.argv[1]):
        with socket.socket(socket.AF_UNIX) as sock:
            try:
                sock.connect(os.path.join(sys.argv[1], name))
                entered += 1
            except OSError:
                pass
print(entered)
"""


def test_another_user_never_gets_in_while_sockets_are_being_made(open_folder: Path, child_process: StartChild) -> None:
    """IPC-D-27, IPC-R-06: not even for an instant, with umask 0."""
    stranger = child_process([sys.executable, "-c", KNOCKING, str(open_folder)])
    assert stranger.stdout.readline() == b"ready\n"
    before = os.umask(0)
    try:
        for number in range(300):
            path = open_folder / f"s{number}"
            listen_privately(path).close()
            path.unlink()
        (open_folder / "end").touch()
    finally:
        os.umask(before)
    assert stranger.stdout.read() == b"0\n"


def test_the_bridge_refuses_a_schema_file_of_another_user(folder: Path, bridge_process: StartBridge) -> None:
    (folder / "schema").write_text("[]", encoding="utf-8")
    os.chown(folder / "schema", 65534, 65534)
    bridge = bridge_process([sys.executable, "-m", "cc_ipc_bridge", str(folder / "s"), str(folder / "schema")])
    assert bridge.wait() == 1
    assert "not a regular file of this user" in bridge.stderr()
