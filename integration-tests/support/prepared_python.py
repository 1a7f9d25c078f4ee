"""A Python interpreter for programs in tests, with the large libraries already imported.

`python()` is a command that is used like `sys.executable`, and `commands()` is a folder for `PATH` that has it as
`python`, with the environment's commands written in Python. All are small clients. The programs run in forks of a
prepared process, so a program starts in some 50 ms, where the imports alone would take seconds.

A fork has its client's arguments, files, environment, folder and signals, and exits as any program does: it returns
from this module's `main()`. If a client is killed, the program is killed too. The prepared process is not a child of
the test run, so no test counts it as a leak; it exits with the test run.

A real start is needed to test the imports of an interpreter, options other than `-W error`, or variables PYTHON….
"""

import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import types
import warnings
from functools import cache
from io import TextIOWrapper
from pathlib import Path

__all__ = ["commands", "python"]

# With modules that these import at first use.
_PRELOADED = """
    anthropic anyio._backends._asyncio cc_compat cc_convert cc_ipc cc_loopback cc_server.command_line
    cc_server.connections cc_demo.run cc_model.doctor genai_prices.data hypothesis.strategies
    langchain_anthropic mcp.server pydantic_ai pytest starlette.applications uvicorn.lifespan.on
    uvicorn.protocols.http.h11_impl
"""

# The folder for temporary files before a test changes it.
_TEMPORARY = tempfile.gettempdir()

_CLIENT = """\
#!{interpreter} -IS
import json, os, signal, socket, sys

arguments = [*{prefix!r}, *sys.argv[1:]]
rest = arguments[2:] if arguments[:2] == ["-W", "error"] else arguments
if not rest or rest[0].startswith("-") and rest[0] not in ("-c", "-m"):
    os.execv({interpreter!r}, [{interpreter!r}, *arguments])
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, frame: server.send(bytes([number])))
socket.send_fds(server, [b"+"], [0, 1, 2])
server.sendall(json.dumps([arguments, os.getcwd(), dict(os.environ)]).encode() + b"\\n")
code = os.waitstatus_to_exitcode(int(server.recv(9)))
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


def python() -> str:
    """Return the interpreter's path; `sys.executable` on systems without fork."""
    return sys.executable if sys.platform != "linux" else str(commands() / "python")


@cache
def commands() -> Path:
    """Return the command folder: `python` and the environment's commands in documentation pages."""
    own = Path(sys.executable).parent
    if sys.platform != "linux":
        return own
    folder = Path(tempfile.mkdtemp(prefix="python-", dir=_TEMPORARY))
    lifeline, _ = os.pipe()  # the other end is open until this process exits
    env = {name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC_", "CLAUDE_"))}
    # Returns when the forking server is ready.
    subprocess.run([sys.executable, __file__, folder], stdin=lifeline, stdout=subprocess.DEVNULL, env=env, check=True)
    os.close(lifeline)
    for name in ("python", "python3", "pytest", "uvicorn"):
        prefix = [] if name.startswith("python") else [str(own / name)]
        client = _CLIENT.format(interpreter=sys.executable, prefix=prefix, address=str(folder / "socket"))
        (folder / name).write_text(client, encoding="utf-8")
        (folder / name).chmod(0o700)
    return folder


def main() -> None:
    """Run the forking process, and a program in each fork."""
    assert sys.platform != "win32"
    folder = Path(sys.argv[1])
    del sys.path[0]
    for name in _PRELOADED.split():
        importlib.import_module(name)
    assert len(os.listdir("/proc/self/task")) == 1, "there is a thread, which a fork would not have"
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "socket"))
        listener.listen()
        if os.fork():
            os._exit(0)
        os.setsid()
        os.dup2(1, 2)  # close all files from the test run
        connection = _connection(listener, folder)
    _run(_program(connection))


def _connection(listener: socket.socket, folder: Path) -> socket.socket:
    """Fork for each client; returns in the fork."""
    assert sys.platform != "win32"
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system reaps the forks
    while 0 not in select.select([listener, 0], [], [])[0]:
        connection, _ = listener.accept()
        if not os.fork():
            return connection
        connection.close()
    shutil.rmtree(folder)
    # Not by a normal exit: the coverage tool must not write when the test run may have ended.
    os._exit(0)


def _program(client: socket.socket) -> list[str]:
    """Fork once more; return in that fork, prepared for the program. The process between waits for the end."""
    assert sys.platform != "win32"
    _, files, _, _ = socket.recv_fds(client, 1, 3)
    stream = client.makefile("rb")
    arguments, folder, env = json.loads(stream.readline())

    def report(*_: object) -> None:
        assert sys.platform != "win32"
        status = os.wait()[1]
        with contextlib.suppress(OSError):  # the client has exited
            client.sendall(b"%d" % status)
        os._exit(0)

    signal.signal(signal.SIGCHLD, report)
    if pid := os.fork():
        for file in files:
            os.close(file)
        while number := stream.read(1):
            os.kill(pid, number[0])
        os.killpg(pid, signal.SIGKILL)
        while True:
            signal.pause()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setpgid(0, 0)
    stream.close()
    client.close()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        before: TextIOWrapper = getattr(sys, name)
        buffering = 1 if name == "stderr" else -1
        stream = open(number, before.mode, buffering, before.encoding, before.errors, closefd=False)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    tempfile.tempdir = None
    return arguments


def _run(arguments: list[str]) -> None:
    if arguments[:2] == ["-W", "error"]:
        warnings.simplefilter("error")
        del arguments[:2]
    kind, *sys.argv = arguments
    if kind == "-m":
        sys.path.insert(0, os.getcwd())
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        return
    sys.modules["__main__"] = module = types.ModuleType("__main__")
    if kind == "-c":
        [code, *_], name = sys.argv, "<string>"
        sys.argv[0] = "-c"
        sys.path.insert(0, "")
    else:
        code, name = Path(kind).read_text("utf-8"), kind
        sys.argv.insert(0, kind)
        sys.path.insert(0, str(Path(kind).resolve().parent))
        module.__file__ = os.path.abspath(kind)
    exec(compile(code, name, "exec"), module.__dict__)


if __name__ == "__main__":
    main()
