"""A session: states, files, and paths."""

import asyncio
import json
import re
import stat
import sys
import tempfile
import uuid
from pathlib import Path

import pytest

import cc_ipc
from cc_ipc.errors import SessionStateError, SocketPathError, UnencodableMessageError
from cc_ipc.session import IPCSessionState
from cc_ipc_bridge.constants import SCHEMA_FILE_PREFIX, SOCKET_FILE_PREFIX, SOCKET_FILE_SUFFIX

from .conftest import Tools


def new_session(tools: Tools, folder: Path) -> cc_ipc.IPCSession:
    return cc_ipc.IPCSession(tools.handlers, tools.schemas, folder=folder)


def contents(folder: Path) -> set[Path]:
    return set(folder.iterdir())


async def test_a_session_goes_from_created_to_started_to_stopped_and_not_back(tools: Tools, folder: Path) -> None:
    """IPC-D-19 to IPC-D-25: `stop` may be called again, from any state; `start` may not."""
    session = new_session(tools, folder)
    assert (session.state, session.server) == (IPCSessionState.CREATED, None)
    assert contents(folder) == set()
    await session.start()
    assert session.state is IPCSessionState.STARTED
    assert session.server is not None
    assert session.server.is_serving
    assert contents(folder) == {session.socket_path, session.schema_path}
    assert session.tool_handlers == tools.handlers
    with pytest.raises(SessionStateError):
        await session.start()
    await session.stop()
    assert (session.state, session.server) == (IPCSessionState.STOPPED, None)
    assert contents(folder) == set()
    assert repr(session).startswith("<IPCSession stopped, 4 tools, /")
    await session.stop()
    with pytest.raises(SessionStateError):
        await session.start()
    unused = new_session(tools, folder)
    await unused.stop()
    assert unused.state is IPCSessionState.STOPPED
    with pytest.raises(SessionStateError):
        await unused.start()


@pytest.mark.parametrize(("seconds", "error"), [(0, TimeoutError), (60, ZeroDivisionError)], ids=["start", "use"])
async def test_a_start_that_is_cancelled_and_an_exception_stop_the_session(
    tools: Tools, folder: Path, seconds: float, error: type[Exception]
) -> None:
    """IPC-D-24: leaving by an exception also leads to Stopped, with everything removed."""
    session = new_session(tools, folder)
    with pytest.raises(error):
        async with asyncio.timeout(seconds), session:
            raise ZeroDivisionError
    assert session.state is IPCSessionState.STOPPED
    assert contents(folder) == set()


async def test_a_failed_start_leaves_no_files(tools: Tools, folder: Path) -> None:
    session = new_session(tools, folder)
    session.socket_path.mkdir()
    with pytest.raises(SocketPathError):
        await session.start()
    assert session.state is IPCSessionState.STOPPED
    assert contents(folder) == {session.socket_path}


async def test_a_session_stopped_while_it_starts_stays_stopped(tools: Tools, folder: Path) -> None:
    session = new_session(tools, folder)
    start, stop = asyncio.ensure_future(session.start()), asyncio.ensure_future(session.stop())
    with pytest.raises(SessionStateError, match=r"the state is .stopped"):
        await start
    await stop
    assert contents(folder) == set()


async def test_both_files_are_private_and_one_is_an_array_of_the_schemas(tools: Tools, folder: Path) -> None:
    """IPC-D-27, IPC-D-13, IPC-D-18, IPC-P-22, IPC-P-25, IPC-R-01."""
    async with new_session(tools, folder) as session:
        for path in (session.socket_path, session.schema_path):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert json.loads(session.schema_path.read_bytes()) == tools.schemas == session.tool_schemas
        assert session.mcp_server_config()["args"][-1] == str(session.schema_path)
    assert not session.schema_path.exists()  # IPC-P-26


async def test_schemas_that_are_not_json_are_refused(folder: Path) -> None:
    session = cc_ipc.IPCSession({}, [{"name": "a", "description": "\ud800", "input_schema": {}}], folder=folder)
    with pytest.raises(UnencodableMessageError, match="in the tool schemas"):
        await session.start()


def test_paths_have_the_names_of_the_data_model_and_one_uuid() -> None:
    """IPC-D-26, IPC-D-34, IPC-D-35, IPC-D-36: in the temporary folder, unique for each session."""
    sessions = [cc_ipc.IPCSession({}, []) for _ in range(2)]
    names = {session.socket_path.name for session in sessions} | {session.schema_path.name for session in sessions}
    assert len(names) == 4
    for session in sessions:
        assert session.socket_path.parent == session.schema_path.parent == Path(tempfile.gettempdir())
        match = re.fullmatch(f"{SOCKET_FILE_PREFIX}(.*){re.escape(SOCKET_FILE_SUFFIX)}", session.socket_path.name)
        assert match is not None
        assert uuid.UUID(match[1]).version == 4
        assert session.schema_path.name.startswith(SCHEMA_FILE_PREFIX)
        assert match[1] in session.schema_path.name


def test_a_temporary_folder_with_a_long_path_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """IPC-D-31: the socket gets a shorter path."""
    monkeypatch.setattr(tempfile, "tempdir", "/tmp/" + "a" * 100)
    assert cc_ipc.IPCSession({}, []).socket_path.parent == Path("/tmp")


def test_the_bridge_is_started_by_this_python_as_a_module(tools: Tools, folder: Path) -> None:
    """IPC-R-09, IPC-R-08: the configuration is available before the start."""
    session = new_session(tools, folder)
    config = session.mcp_server_config()
    assert (config["type"], config["command"]) == ("stdio", sys.executable)
    assert config["args"][-4:] == ["-m", "cc_ipc_bridge", str(session.socket_path), str(session.schema_path)]
    assert session.command == [sys.executable, *config["args"]]
    assert cc_ipc.DEFAULT_TRANSPORT == "auto"  # IPC-D-03, IPC-D-38


async def test_two_sessions_live_side_by_side(tools: Tools, folder: Path) -> None:
    """IPC-D-30, IPC-D-44: the second start removes nothing of the first."""
    async with new_session(tools, folder) as first, new_session(tools, folder) as second:
        for session in (first, second):
            async with cc_ipc.IPCClient(session.socket_path) as client:
                assert (await client.call_tool("echo", {}))["content"]
