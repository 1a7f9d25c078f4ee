"""A running Python process's functions as tools for any MCP host: in a notebook, a server or a debugger.

This module owns a thread with an event loop, and the session that runs there.
"""

import asyncio
import atexit
import shlex
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Self, TextIO

from .functions import Function, function_tool
from .session import IPCSession

# Two files are created within milliseconds, unless the disk hangs.
_START_TIMEOUT = 10.0

# Longer than a session waits for handlers and connections. A thread that still runs then ends with the process.
_STOP_TIMEOUT = 5.0


def serve(functions: Mapping[str, Function], *, name: str = "python", out: TextIO | None = None) -> "FunctionServer":
    """Offer functions as tools to any MCP host, print the command that connects a host, and return.

    Each call of a sync function runs in a new thread. Async functions run in the caller's running event loop, if any,
    otherwise in the server's.

    Args:
        functions: The functions, by tool name.
        name: The server's name in the host.
        out: Stream for the command. Default: stdout.

    Returns:
        The server. It runs until `stop`, the end of a `with` block, or the process's end.

    Raises:
        TypeError: A function has parameters that cannot be given by name.
        OSError: The socket or the schema file cannot be created.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        loop = None
    tools = [function_tool(tool_name, function, loop) for tool_name, function in functions.items()]
    session = IPCSession({tool.schema["name"]: tool.handler for tool in tools}, [tool.schema for tool in tools])
    server = FunctionServer(name, session)
    try:
        (out or sys.stdout).write(f"Serving {', '.join(functions)}. Connect with:\n{server.connect_command}\n")
    except BaseException:
        server.stop()
        raise
    return server


class FunctionServer:
    """Server for Python functions in a background thread. Created by `serve`."""

    def __init__(self, name: str, session: IPCSession) -> None:
        self._name = name
        self._session = session
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()
        self._started: Future[None] = Future()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"cc-ipc-{name}", daemon=True)
        self._thread.start()
        atexit.register(self.stop)
        try:
            self._started.result(_START_TIMEOUT)
        except BaseException:
            self.stop()
            raise

    @property
    def session(self) -> IPCSession:
        """The session. It belongs to the server's thread, so use only the paths and the command."""
        return self._session

    @property
    def connect_command(self) -> str:
        """The shell command that adds the server to Claude Code."""
        return f"claude mcp add {shlex.quote(self._name)} -- {shlex.join(self._session.command)}"

    def stop(self) -> None:
        """Stop the server and remove the files. Idempotent and thread-safe."""
        atexit.unregister(self.stop)
        if self._loop is None:  # not started yet: the session will stop as soon as it has started
            self._stopping.set()
        else:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._stopping.set)
        if threading.current_thread() is not self._thread:
            self._thread.join(_STOP_TIMEOUT)

    def wait(self) -> None:
        """Block until the server has stopped, without a time limit."""
        self._ended.wait()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            if not self._started.done():
                self._started.set_exception(error)
                return
            raise
        finally:
            self._ended.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        async with self._session:
            self._started.set_result(None)
            await self._stopping.wait()

    def __repr__(self) -> str:
        return f"<FunctionServer {self._name!r} {self._session!r}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
