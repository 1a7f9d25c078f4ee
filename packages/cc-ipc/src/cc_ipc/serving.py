"""Functions of a running Python process, offered to any MCP host: from a notebook, a server, a debugger.

It owns a thread with an event loop and the session that runs there, and knows nothing of the wire.
"""

import asyncio
import atexit
import shlex
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from types import TracebackType
from typing import Self, TextIO

from .functions import Function, function_tool
from .session import IPCSession

__all__ = ["Served", "connect_command", "serve"]

# Making two files takes milliseconds. Past this the disk hangs, and the caller should hear of it.
_START_TIMEOUT = 10.0

# More than a session allows its handlers and connections; what remains ends with the process.
_STOP_TIMEOUT = 5.0


def serve(functions: Mapping[str, Function], *, name: str = "python", out: TextIO | None = None) -> "Served":
    """Offer functions as tools to any MCP host, print the command that connects one, and go on.

    Sync functions run in threads of their own. Async ones run in the event loop that this is called in, if one runs
    there, and otherwise in a loop of the server's.

    Args:
        functions: The functions, by the names of their tools.
        name: What the host is to call the server.
        out: Where the command is printed. Default: stdout.

    Returns:
        What serves them until `stop`, the end of a `with` block, or the end of the process.

    Raises:
        TypeError: A function has parameters that cannot be given by name.
        OSError: Socket or schema file cannot be made.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        loop = None
    tools = [function_tool(tool_name, function, loop) for tool_name, function in functions.items()]
    session = IPCSession({tool.schema["name"]: tool.handler for tool in tools}, [tool.schema for tool in tools])
    served = Served(name, session)
    try:
        (out or sys.stdout).write(f"Serving {', '.join(functions)}. Connect with:\n{served.connect_command}\n")
    except BaseException:
        served.stop()
        raise
    return served


def connect_command(name: str, command: list[str]) -> str:
    """Return the shell command that makes Claude Code know an MCP server."""
    return f"claude mcp add {shlex.quote(name)} -- {shlex.join(command)}"


class Served:
    """Functions that are being offered. Made by `serve`."""

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
        """The session; it belongs to the server's thread, so only its paths and its command are for others."""
        return self._session

    @property
    def connect_command(self) -> str:
        """The shell command that makes Claude Code know the server."""
        return connect_command(self._name, self._session.command)

    def stop(self) -> None:
        """Stop offering the functions and remove the files. Allowed more than once, and from any thread."""
        atexit.unregister(self.stop)
        if self._loop is None:  # not yet there; it will stop as soon as it has started
            self._stopping.set()
        else:
            with suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._stopping.set)
        if threading.current_thread() is not self._thread:
            self._thread.join(_STOP_TIMEOUT)

    def wait(self) -> None:
        """Wait until the functions are offered no more."""
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
        return f"<Served {self._name!r} {self._session!r}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
