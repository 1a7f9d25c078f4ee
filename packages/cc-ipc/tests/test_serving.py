"""This process's functions, offered to MCP hosts."""

import asyncio
import io
import json
import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import cc_ipc.serving
from cc_ipc import BridgeStartupError, FunctionServer, IPCClient, IPCSession, check_bridge, probe, serve
from cc_ipc.__main__ import find_functions, main
from cc_ipc.session import IPCSessionState

from .conftest import LIMIT, StartBridge, StartChild, Tools, raising


@pytest.fixture(autouse=True)
def temporary_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def whereabouts() -> str:
    return threading.current_thread().name


def text_of(answer: Any) -> str:
    return answer["result"]["content"][0]["text"]


def test_functions_are_served_to_any_host_until_the_stop(temporary_folder: Path, bridge_process: StartBridge) -> None:
    """IPC-P-60: and the command that connects a host is printed."""
    out = io.StringIO()
    with serve({"add": add, "whereabouts": whereabouts}, name="my tools", out=out) as server:
        printed = out.getvalue().splitlines()
        assert printed[0] == "Serving add, whereabouts. Connect with:"
        command = shlex.split(printed[1])
        assert command[:5] == ["claude", "mcp", "add", "my tools", "--"]
        assert printed[1] == server.connect_command
        bridge = bridge_process(command[5:])
        assert [tool["name"] for tool in bridge.request("tools/list")["result"]["tools"]] == ["add", "whereabouts"]
        assert text_of(bridge.request("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})) == "3"
        assert text_of(bridge.request("tools/call", {"name": "whereabouts"})) == "cc-ipc-my tools"
        wrong = bridge.request("tools/call", {"name": "add", "arguments": {"a": "x"}})
        assert text_of(wrong).startswith("ValidationError: ")
        assert json.loads(server.session.schema_path.read_bytes())[0]["description"] == "Add two numbers."
        assert server.session.state is IPCSessionState.STARTED
        assert "my tools" in repr(server)
    assert server.session.state is IPCSessionState.STOPPED
    assert list(temporary_folder.iterdir()) == []
    assert bridge.wait(2) == 0
    server.stop()
    server.wait()


async def test_async_functions_run_in_the_callers_loop(capsys: pytest.CaptureFixture[str]) -> None:
    """IPC-P-51: as in a notebook with a running loop."""
    with serve({"whereabouts": whereabouts}) as server:
        assert "claude mcp add python -- " in capsys.readouterr().out
        async with IPCClient(server.session.socket_path) as client:
            result = await client.call_tool("whereabouts", {})
    assert result["content"] == [{"type": "text", "text": threading.current_thread().name}]


def test_a_failed_start_is_raised_to_the_caller(temporary_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary_folder.chmod(0o755)
    monkeypatch.setattr("tempfile.tempdir", str(temporary_folder / "missing"))
    with pytest.raises(FileNotFoundError):
        serve({"add": add}, out=io.StringIO())
    with pytest.raises(TypeError):
        serve({"bad": lambda *numbers: numbers}, out=io.StringIO())


def test_a_failure_of_the_session_ends_the_wait(temporary_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    caught: list[object] = []

    def catch(arguments: threading.ExceptHookArgs) -> None:
        caught.append(arguments.exc_value)

    monkeypatch.setattr(threading, "excepthook", catch)

    async def fail(server: FunctionServer) -> None:
        vars(server)["_started"].set_result(None)
        raise ZeroDivisionError

    monkeypatch.setattr(cc_ipc.serving.FunctionServer, "_serve", fail)
    server = serve({"add": add}, out=io.StringIO())
    server.wait()
    server.stop()
    assert [type(error) for error in caught] == [ZeroDivisionError]


def test_a_start_that_takes_too_long_fails_and_leaves_no_files(
    temporary_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    threads: list[threading.Thread] = []
    run: Callable[[FunctionServer], None] = vars(FunctionServer)["_run"]

    def late(server: FunctionServer) -> None:
        threads.append(threading.current_thread())
        assert go_on.wait(LIMIT)
        run(server)

    monkeypatch.setattr(FunctionServer, "_run", late)
    monkeypatch.setattr(cc_ipc.serving, "_START_TIMEOUT", 0.01)
    monkeypatch.setattr(cc_ipc.serving, "_STOP_TIMEOUT", 0.01)
    with pytest.raises(TimeoutError):
        serve({"add": add}, out=io.StringIO())
    go_on.set()
    threads[0].join(LIMIT)
    assert list(temporary_folder.iterdir()) == []


def test_a_command_that_cannot_be_printed_leaves_no_files(temporary_folder: Path) -> None:
    out = io.StringIO()
    out.close()
    with pytest.raises(ValueError, match="closed file"):
        serve({"add": add}, out=out)
    assert list(temporary_folder.iterdir()) == []


def test_a_tool_may_stop_its_server(temporary_folder: Path) -> None:
    async def stop() -> None:
        server.stop()

    server = serve({"stop": stop}, out=io.StringIO())

    async def call() -> None:
        async with IPCClient(server.session.socket_path) as client:
            await client.call_tool("stop", {})

    asyncio.run(call())
    server.wait()
    server.stop()
    assert list(temporary_folder.iterdir()) == []


# The command line:


@pytest.fixture
def module(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (folder / "tools_of_mine.py").write_text(
        "class shop:\n    @staticmethod\n    def price(item: str) -> int:\n        return len(item)\n"
        "def add(a: int, b: int) -> int:\n    return a + b\n"
        "FUNCTIONS, LISTED, NUMBER, WRONG, NAMELESS = {'plus': add}, [add], 1, {'add': 1}, [1]\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    yield "tools_of_mine"
    sys.modules.pop("tools_of_mine", None)


@pytest.mark.parametrize(
    ("path", "names"), [("FUNCTIONS", ["plus"]), ("LISTED", ["add"]), ("add", ["add"]), ("shop.price", ["price"])]
)
def test_a_mapping_a_list_or_a_function_is_found(module: str, path: str, names: list[str]) -> None:
    assert list(find_functions(f"{module}:{path}")) == names


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("tools_of_mine", "is not of the form module:object"),
        (":x", "is not of the form module:object"),
        ("no_such_module:x", "cannot be found: No module"),
        ("tools_of_mine:nope", "cannot be found"),
        ("tools_of_mine:NUMBER", "is a int, not a function"),
        ("tools_of_mine:WRONG", "contains 'add': 1"),
        ("tools_of_mine:NAMELESS", "contains None: 1"),
    ],
)
def test_an_invalid_target_is_an_error_that_names_it(
    module: str, target: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", target]) == 2
    assert message in capsys.readouterr().err


def test_the_command_serves_until_it_is_interrupted(
    module: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], temporary_folder: Path
) -> None:
    handlers: list[object] = []

    def note(number: int, handler: object) -> None:
        handlers.append((number, handler))

    monkeypatch.setattr(signal, "signal", note)

    monkeypatch.setattr(FunctionServer, "wait", raising(KeyboardInterrupt()))
    assert main(["serve", f"{module}:add", "--name", "sums"]) == 0
    assert "claude mcp add sums -- " in capsys.readouterr().out
    assert handlers == [(signal.SIGTERM, signal.default_int_handler)]
    assert [path.name for path in temporary_folder.iterdir() if path.name.startswith("claudecode")] == []


@pytest.fixture
def default_sigint_handler() -> Iterator[None]:
    """Restore the default SIGINT handler: a shell's background programs ignore the signal, and so do their children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("default_sigint_handler")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_program_removes_its_files_when_it_is_terminated(
    module: str, folder: Path, number: signal.Signals, child_process: StartChild, bridge_process: StartBridge
) -> None:
    """IPC-P-60."""
    command = [sys.executable, "-m", "cc_ipc", "serve", f"{module}:FUNCTIONS"]
    program = child_process(command, cwd=folder, env={**os.environ, "TMPDIR": str(folder)})
    assert program.stdout.readline() == b"Serving plus. Connect with:\n"
    bridge = bridge_process(shlex.split(program.stdout.readline().decode())[5:])
    assert text_of(bridge.request("tools/call", {"name": "plus", "arguments": {"a": 1, "b": 2}})) == "3"
    program.process.send_signal(number)
    assert program.wait() == 0
    assert [path.name for path in folder.iterdir() if path.name.startswith("claudecode")] == []


# Startup check for a bridge:


async def test_a_bridge_that_starts_lists_its_tools(session: IPCSession, tools: Tools) -> None:
    assert await check_bridge(session.command) == list(tools.handlers)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["/nowhere/python"], "cannot be started"),
        ([sys.executable, "-c", "import sys; sys.exit('no such module')"], "ended with status 1"),
        ([sys.executable, "-c", "print('hello')"], "did not list its tools"),
        ([sys.executable, "-c", "print('[]')"], "did not list its tools"),
        ([sys.executable, "-c", "print('{\"result\": 1}')"], "did not list its tools"),
        ([sys.executable, "-c", "print('{\"result\": {}}')"], "did not list its tools"),
    ],
    ids=["no program", "an exit", "no JSON", "no object", "no result", "no tools"],
)
async def test_a_bridge_that_does_not_start_is_an_error_with_the_cause(command: list[str], reason: str) -> None:
    """IPC-D-43."""
    with pytest.raises(BridgeStartupError, match=reason) as caught:
        await check_bridge(command)
    assert list(caught.value.command) == command
    assert ("no such module" in caught.value.stderr_tail) == ("status 1" in reason)


async def test_a_bridge_that_does_not_answer_is_killed_and_its_stderr_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """IPC-D-43."""
    start = asyncio.create_subprocess_exec

    async def start_and_wait(*command: str, **options: Any) -> asyncio.subprocess.Process:
        process = await start(*command, **options)
        assert process.stdout is not None
        async with asyncio.timeout(LIMIT):
            assert await process.stdout.readline() == b"Ready\n"
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start_and_wait)
    monkeypatch.setattr(probe, "_ANSWER_TIMEOUT", 0.01)
    program = "import os, time; os.write(2, b'Waiting for a mount'); os.write(1, b'Ready\\n'); time.sleep(60)"
    with pytest.raises(BridgeStartupError, match=r"did not answer within 0\.01 seconds") as caught:
        await check_bridge([sys.executable, "-S", "-c", program])
    assert caught.value.stderr_tail == "Waiting for a mount"
