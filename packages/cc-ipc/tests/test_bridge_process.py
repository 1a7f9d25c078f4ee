"""The bridge process."""

import asyncio
import contextlib
import json
import os
import runpy
import subprocess
import sys
import threading
from collections.abc import Generator
from io import FileIO
from pathlib import Path

import pytest

import cc_ipc_bridge
from cc_ipc import IPCSession
from cc_ipc.files import LockedFile
from cc_ipc_bridge import main as main_module
from cc_ipc_bridge.main import main

from .conftest import StartBridge, StartOwner, Tools, happens, mcp, mcp_call, raising

END = 2.0
"""Seconds within which each side must notice the other's end."""


def schema_file(folder: Path) -> Path:
    path = folder / "schema.json"
    path.write_text('[{"name": "echo", "description": "", "input_schema": {}}]', encoding="utf-8")
    return path


def command(folder: Path) -> list[str]:
    return [sys.executable, "-m", "cc_ipc_bridge", str(folder / "nowhere"), str(schema_file(folder))]


async def test_a_bridge_lists_tools_without_connecting_and_connects_for_the_first_call(
    session: IPCSession, bridge_process: StartBridge
) -> None:
    """IPC-P-30, IPC-P-04, IPC-D-14."""
    bridge = bridge_process(session.command)
    listed = await asyncio.to_thread(bridge.request, "tools/list")
    assert [tool["name"] for tool in listed["result"]["tools"]] == ["echo", "fail", "wait", "meet"]
    assert "0 connections" in repr(session.server)
    answer = await bridge.call("echo", {"city": "Zürich"})
    assert json.loads(answer["result"]["content"][0]["text"]) == {"city": "Zürich"}
    failed = await bridge.call("fail")
    assert failed["result"] == {"content": [{"type": "text", "text": "ValueError: no such city"}], "isError": True}
    assert "1 connections" in repr(session.server)


async def test_output_printed_in_the_bridge_goes_to_stderr(folder: Path, bridge_process: StartBridge) -> None:
    """IPC-P-35: even from a module that prints after the import."""
    (folder / "sitecustomize.py").write_text(
        "import threading\n"
        "original = threading.Thread.start\n"
        "def start(self):\n    print('noise', flush=True)\n    original(self)\n"
        "threading.Thread.start = start\n",
        encoding="utf-8",
    )
    bridge = bridge_process(command(folder), env={**os.environ, "PYTHONPATH": str(folder)})
    assert "error" in await bridge.call("echo")
    bridge.stdin.close()
    assert bridge.wait() == 0
    assert "noise" in bridge.stderr()


def test_the_bridge_imports_only_the_standard_library_and_no_asyncio(folder: Path) -> None:
    """IPC-P-31: according to the loaded modules after a list, a failed call, and the exit."""
    script = (
        "import json, os, sys\n"
        "before = set(sys.modules)\n"
        "from cc_ipc_bridge.main import main\n"
        "status = main(sys.argv[1:], os._exit)\n"
        "json.dump([status, sorted(set(sys.modules) - before), sorted(sys.stdlib_module_names)], sys.stderr)\n"
    )
    lines = [mcp("tools/list", id=1), mcp_call(2, "echo", {"a": "a" * 11_000_000}), mcp_call(3, "echo")]
    run = subprocess.run(
        [sys.executable, "-c", script, *command(folder)[-2:]],
        input=b"".join(json.dumps(line).encode() + b"\n" for line in lines),
        capture_output=True,
        timeout=20,
    )
    status, loaded, standard = json.loads(run.stderr)
    assert (status, len(run.stdout.splitlines())) == (0, 3)
    own = {name for name in loaded if name.partition(".")[0] == "cc_ipc_bridge"}
    assert {name.partition(".")[0] for name in set(loaded) - own} <= set(standard)
    heavy = {"asyncio", "typing", "dataclasses", "inspect", "pydantic", "logging", "pathlib", "tempfile"}
    assert not heavy & set(loaded)
    modules = "constants lock main payload peer process protocol relay responses".split()
    assert own == {"cc_ipc_bridge", *(f"cc_ipc_bridge.{name}" for name in modules)}


def test_modules_in_the_hosts_folder_are_not_imported(tools: Tools, folder: Path, bridge_process: StartBridge) -> None:
    """IPC-R-09: the host's working folder may contain any `json.py`."""
    (folder / "json.py").write_text("raise SystemExit('taken')", encoding="utf-8")
    schema = schema_file(folder)
    session = IPCSession(tools.handlers, tools.schemas, folder=folder)
    bridge = bridge_process([*session.command[:-1], str(schema)], cwd=folder)
    assert "tools" in bridge.request("tools/list")["result"]


# Exit:


async def test_a_cancellation_and_the_end_of_input_cancel_the_running_tool(
    session: IPCSession, bridge_process: StartBridge, tools: Tools
) -> None:
    """IPC-P-32, IPC-P-36."""
    bridge = bridge_process(session.command)
    bridge.send(mcp_call(1, "wait"))
    await happens(tools.started)
    bridge.send(mcp("notifications/cancelled", {"requestId": 1}))
    await happens(tools.cancelled)
    assert (await bridge.call("echo", request_id=2))["id"] == 2
    tools.started.clear()
    tools.cancelled.clear()
    bridge.send(mcp_call(3, "wait"))
    await happens(tools.started)
    bridge.stdin.close()
    assert await asyncio.to_thread(bridge.wait, END) == 0
    await happens(tools.cancelled)


def test_a_killed_parent_ends_the_bridge_which_answers_its_calls(
    owner_process: StartOwner, bridge_process: StartBridge
) -> None:
    """IPC-P-36, IPC-P-40, IPC-P-E07."""
    owner = owner_process()
    bridge, idle = bridge_process(owner.command), bridge_process(owner.command)
    idle.request("tools/list")
    bridge.send(mcp_call(1, "echo"))
    assert "result" in bridge.read()
    # The last call is answered, so the call before it is running.
    bridge.send(mcp_call(2, "wait"), mcp_call(3, "echo"))
    assert bridge.read()["id"] == 3
    owner.kill()
    answer = bridge.read()
    assert (answer["id"], answer["error"]["data"]) == (2, {"type": "IPCConnectionError"})
    for process in (bridge, idle):
        assert process.wait(END) == 0


# Startup errors:


@pytest.mark.parametrize("content", ["", "{}", '[{"name": "a"}]', None], ids=["empty", "object", "no schema", "link"])
def test_an_invalid_schema_file_or_a_symbolic_link_is_refused(
    folder: Path, content: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """IPC-D-29."""
    if content is None:
        (folder / "s").symlink_to(schema_file(folder))
    else:
        (folder / "s").write_text(content, encoding="utf-8")
    assert main(["socket", str(folder / "s")], lambda status: None) == 1
    assert "cannot be used" in capsys.readouterr().err


# The same in this process, where single steps can be observed:


@contextlib.contextmanager
def standard_streams() -> Generator[tuple[FileIO, FileIO]]:
    """Replace this process's stdin and stdout by pipes, and yield the other ends."""
    originals = [os.dup(fd) for fd in (0, 1)]
    (read_in, write_in), (read_out, write_out) = os.pipe(), os.pipe()
    os.dup2(read_in, 0)
    os.dup2(write_out, 1)
    for fd in (read_in, write_out):
        os.close(fd)
    with FileIO(write_in, "w") as stdin, FileIO(read_out) as stdout:
        try:
            yield stdin, stdout
        finally:
            for fd, before in enumerate(originals):
                os.dup2(before, fd)
                os.close(before)


def test_main_exits_when_the_owner_of_the_schema_file_releases_it(folder: Path) -> None:
    """IPC-P-36."""
    owned = LockedFile(folder / "schema", b"[]")
    statuses: list[int] = []
    with standard_streams() as (stdin, stdout):

        def leave(status: int) -> None:
            statuses.append(status)
            stdin.close()

        def release_when_it_serves() -> None:
            stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
            stdout.read(1000)
            owned.release()

        threading.Thread(target=release_when_it_serves).start()
        assert main([str(folder / "s"), str(folder / "schema")], leave) == 0
    assert statuses == [0]


def test_an_interrupt_ends_the_bridge_without_a_traceback(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main_module, "serve_bridge", raising(KeyboardInterrupt()))
    assert main([str(folder / "s"), str(schema_file(folder))], lambda status: None) == 130


def test_the_module_runs_main_and_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    statuses: list[int] = []
    monkeypatch.setattr(sys, "argv", ["bridge"])
    monkeypatch.setattr(os, "_exit", statuses.append)
    runpy.run_module("cc_ipc_bridge", run_name="__main__")
    assert statuses == [2]
    assert cc_ipc_bridge.__doc__
