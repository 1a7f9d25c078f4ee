"""The CLI process: spawned by the SDK, read, watched, measured and ended by us.

It extends the SDK subprocess transport (`sdk.py`): no public API starts the CLI with the options on the command line
and also gives the process id, the exit code and a way to end the process at once.
"""

import json
import logging
import os
import re
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import dataclass, replace
from subprocess import DEVNULL
from typing import Any, Literal

import anyio
import anyio.to_thread
import psutil
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.buffered import BufferedByteReceiveStream
from claude_agent_sdk import ClaudeAgentOptions
from pydantic_core import from_json
from typing_extensions import override

from ..background import in_forked_child
from ..errors import CLIConnectionError, CLIJSONDecodeError, ProcessExitedError, StartFailedError
from ..sdk import SubprocessCLITransport, forget_children
from .cli_path import check_paths, cli_advice
from .login import wait_for_renewal
from .private_folder import PrivateFolder
from .process_tree import MARK, descendants, end_all, set_limit, start_watchdog

logger = logging.getLogger(__name__)

Phase = Literal["connect", "turn", "control"] | None
"""A process's activity, for errors: starting, answering a prompt or a control request; None if idle."""

# The CLI sends a whole message as one line: a request with a few images has tens of megabytes.
_MAX_LINE_BYTES = 256 * 1024 * 1024

# The last lines say why; a CLI that fails can print kilobytes of source code.
_STDERR_LINES = 40
_LOG_ENTRY = re.compile(r"\[Anthropic SDK \w+\] |\d{4}-\d\d-\d\dT[\d:.]+Z \[[A-Z]+\] ")
# An entry with an object continues on indented lines, up to a brace.
_LOG_CONTINUATION = (" ", "\t", "}")

# A process that has closed stdout has ended or soon will. The exit code and the last stderr lines come in a moment, or
# never: a child process can hold the pipes open.
_EXIT_SECONDS = 0.5
_STDERR_SECONDS = 0.2
# A program that failed at the start is asked for its name, which takes milliseconds.
_VERSION_SECONDS = 2.0

# With it the CLI reports in a result on stdout why it refuses to start.
_START_RESULTS = {"CLAUDE_CODE_STARTUP_FAILURE_RESULTS": "1"}

# Time for the process descendants to end before they are killed.
_DESCENDANTS_SECONDS = 0.1

# A process that ends during a turn takes 20 ms, or waits for something that is irrelevant to us.
_TURN_SECONDS = 0.2

_MB = 1e6


class LastWords:
    """Last stderr lines that are not a log, since the last `forget()`, for the error that reports the process end.

    With debug logging the CLI writes two logs to stderr: the CLI's, and the log of the API client inside it, with the
    headers of each request. They do not explain an end, and a header can hold a secret. Measured on CLI 2.1.329.
    """

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=_STDERR_LINES)
        self._is_in_log = False

    def take(self, line: str) -> None:
        """Read a line."""
        is_continued = self._is_in_log and line.startswith(_LOG_CONTINUATION)
        self._is_in_log = is_continued or _LOG_ENTRY.match(line) is not None
        if not self._is_in_log:
            self._lines.append(line)

    def forget(self) -> None:
        """Drop the lines so far, which belong to an earlier request."""
        self._lines.clear()

    def __str__(self) -> str:
        return "\n".join(self._lines)


@dataclass(frozen=True, slots=True)
class Memory:
    """A process's resident memory, in megabytes (10^6 bytes)."""

    own: float
    """Unshared memory."""
    shared: float = 0.0
    """Memory mapped from files; processes that run the same program share most of it. 0 except on Linux."""


def memory_of(pids: Iterable[int]) -> dict[int, Memory]:
    """Return the memory of all processes that can be measured. It takes microseconds."""
    memories: dict[int, Memory] = {}
    for pid in pids:
        with suppress(psutil.Error, OSError):  # such as without a free file descriptor
            # Not `memory_full_info()`: it takes 7 ms and stops the process meanwhile.
            info = psutil.Process(pid).memory_info()
            shared = getattr(info, "shared", 0)
            memories[pid] = Memory((info.rss - shared) / _MB, shared / _MB)
    return memories


class CLIProcess(SubprocessCLITransport):
    """A Claude Code CLI on stdin and stdout.

    Unlike the SDK transport, it raises `ProcessExitedError` as soon as the process ends unexpectedly, with any exit
    code, and it ends the process quickly: at once while it is busy, otherwise after half the `close_seconds`.
    It runs in a private folder, which goes with it.
    """

    def __init__(self, options: ClaudeAgentOptions, *, close_seconds: float) -> None:
        check_paths(options.cwd, options.cli_path)
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        self._caller_stderr = options.stderr
        self._start_failure: dict[str, Any] | None = None
        self._output = ""
        self._max_line = options.max_buffer_size or _MAX_LINE_BYTES
        self._close_seconds = close_seconds
        self._watchdog = AsyncExitStack()
        self._is_closing = False
        self._close_lock = anyio.Lock()
        self.phase: Phase = "connect"
        """Present activity. In a turn the process does not end when stdin is closed."""
        self.last_words = LastWords()
        with ExitStack() as on_failure:
            try:
                self._folder = PrivateFolder()
                on_failure.callback(self._folder.remove)
                options = self._folder.options(options)
            except OSError as error:
                reason = f"The private folder for Claude Code cannot be made: {error}"
                advice = "Make room in the folder for temporary files, or raise the limit of open files."
                raise CLIConnectionError(reason=reason, advice=advice) from error
            options = replace(options, stderr=self._on_stderr, env={**_START_RESULTS, **options.env})
            super().__init__(prompt=_no_prompt(), options=options)
            on_failure.pop_all()
        self.env = options.env
        """Variables of the CLI, on top of this process's."""

    @property
    def mark(self) -> dict[str, str]:
        """Environment variable that makes another process end with this one."""
        return {MARK: str(self._folder.path)}

    @property
    def pid(self) -> int | None:
        """Process id, or None before it is started and after it is closed."""
        process = self._process  # read once: another thread may ask while it is closed
        return None if process is None else process.pid

    @property
    def has_ended(self) -> bool:
        """True if the process has ended, even if the exit is not yet noticed."""
        process = self._process
        if process is None or process.returncode is not None:
            return True
        # Platforms without `os.waitid`.
        if sys.platform == "win32" or (sys.platform == "darwin" and sys.version_info < (3, 13)):
            return False
        try:
            # WNOWAIT leaves the exit code to asyncio.
            return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True  # already reaped

    @property
    def stderr_tail(self) -> str:
        """Last lines that the process wrote to stderr."""
        return "\n".join([*self._stderr])

    def forget_stderr(self) -> None:
        """Drop the stderr output so far, which belongs to an earlier lease."""
        self._stderr.clear()
        self.last_words.forget()

    @override
    async def connect(self) -> None:
        await super().connect()
        if self._process is not None and not self._is_closing:
            set_limit(self._process.pid, self._folder.path)
            if os.name == "posix":
                with suppress(OSError):  # no shell
                    self._watchdog.push_async_callback(await start_watchdog(self._process.pid, self._folder.path))
        if self._is_closing:
            # Closed during the start, when there was nothing to close yet.
            await self.close()
            raise CLIConnectionError(reason="The session was closed while it was being opened")

    @override
    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        process = self._process
        if process is None or process.stdout is None:
            raise CLIConnectionError(reason="Claude Code was not started")
        async for line in self._lines(process.stdout):
            # Some builds write other lines to stdout; a line that looks like a message must be one.
            if line.lstrip().startswith(b"{"):
                message = _parsed(line)
                if message.get("startup_failure_reason"):
                    self._start_failure = message
                else:
                    yield message
            elif self.phase == "connect":
                self._output += f"{_text(line)} "
        if not self._is_closing:
            raise await self._exited(process)

    @override
    async def close(self) -> None:
        self._is_closing = True
        with anyio.CancelScope(shield=True), ExitStack() as at_last:
            at_last.callback(self._folder.remove)
            async with self._close_lock:
                process = self._process
                try:
                    if process is not None:
                        with anyio.move_on_after(self._close_seconds if process.returncode is None else 0):
                            await wait_for_renewal(self.env)
                        await self._end(process)
                finally:
                    # On an overloaded machine the close timeout may be over by now.
                    if process is not None and process.returncode is None:
                        with suppress(ProcessLookupError):
                            process.kill()
                    await self._watchdog.aclose()
                # The rest takes no time: the process has ended.
                await super().close()

    async def _end(self, process: Process) -> None:
        if self.phase in (None, "control"):
            with anyio.move_on_after(self._close_seconds / 2):
                await self.end_input()
                await process.wait()
        elif self.phase == "turn":
            await self._end_in_turn(process)
        for end in (process.terminate, process.kill):
            if process.returncode is not None:
                break
            with suppress(ProcessLookupError):
                end()
            with anyio.move_on_after(self._close_seconds / 2):
                await process.wait()
        # Leftover tool processes, and MCP servers that do not end when stdin is closed.
        await self._end_descendants(process)

    async def _end_in_turn(self, process: Process) -> None:
        """End a process that may wait for a tool, and would need 1.5 seconds for that. On Windows nothing stops it."""
        if sys.platform == "win32":
            return
        with suppress(ProcessLookupError):
            # Stopped while the tools end; otherwise the CLI would tell the model.
            process.send_signal(signal.SIGSTOP)
            try:
                await self._end_descendants(process)
            finally:
                process.terminate()
                process.send_signal(signal.SIGCONT)
            with anyio.move_on_after(min(_TURN_SECONDS, self._close_seconds / 2)):
                await process.wait()
            process.kill()

    async def _end_descendants(self, process: Process) -> None:
        def end() -> None:
            # The id of a reaped process may belong to another process by now.
            pid = process.pid if process.returncode is None else None
            if processes := descendants(pid, self._folder.path):
                end_all(processes, _DESCENDANTS_SECONDS)

        try:
            await anyio.to_thread.run_sync(end)
        except RuntimeError:
            end()  # from Python 3.12 on, no thread can be started when the interpreter ends

    async def _lines(self, stdout: ByteReceiveStream) -> AsyncIterator[bytes]:
        stream = BufferedByteReceiveStream(stdout)
        while True:
            try:
                yield await stream.receive_until(b"\n", self._max_line)
            except anyio.DelimiterNotFound:
                reason = f"it is longer than {self._max_line} bytes"
                raise CLIJSONDecodeError(line=_text(stream.buffer[:1000]), reason=reason) from None
            except (anyio.IncompleteRead, anyio.ClosedResourceError, anyio.BrokenResourceError):
                return

    async def _exited(self, process: Process) -> ProcessExitedError:
        with anyio.move_on_after(_EXIT_SECONDS):
            await process.wait()
        if self._stderr_task is not None:
            with anyio.move_on_after(_STDERR_SECONDS):
                await self._stderr_task.wait()
        code, tail = process.returncode, str(self.last_words)
        if (failure := self._start_failure) is not None:
            cause, message = failure["startup_failure_reason"], "; ".join(failure.get("errors", ()))
            return StartFailedError(cause=cause, message=message, exit_code=code, stderr_tail=tail)
        has_exited = self.phase == "connect" and code is not None and code >= 0
        if has_exited and self._options.cli_path and not await self._is_claude_code():
            reason = f"exited with code {code} and wrote: {' '.join((self._output + tail).split())[:300] or 'nothing'}"
            message = f"cli_path={str(self._options.cli_path)!r} is not Claude Code's CLI: it {reason}"
            facts = {"cause": "not_claude_code", "message": message, "stderr_tail": tail, "advice": cli_advice()}
            return StartFailedError(exit_code=code, **facts)
        return ProcessExitedError(exit_code=code, stderr_tail=tail, phase=self.phase)

    async def _is_claude_code(self) -> bool:
        """Return false if the program answers `--version` otherwise than the CLI: `2.1.329 (Claude Code)`."""
        with suppress(OSError), anyio.move_on_after(_VERSION_SECONDS):
            command, env = [str(self._options.cli_path), "--version"], {**os.environ, **self.env}
            return b"Claude Code" in (await anyio.run_process(command, stdin=DEVNULL, check=False, env=env)).stdout
        return True

    def _on_stderr(self, line: str) -> None:
        self._stderr.append(line)
        self.last_words.take(line)
        if self._caller_stderr is not None:
            try:
                self._caller_stderr(line)
            except BaseException:  # else the SDK would read no more of it
                logger.exception("The callback for stderr failed")


def _parsed(line: bytes) -> dict[str, Any]:
    with suppress(ValueError):
        return from_json(line)
    try:
        # Python's parser also accepts deep nesting, and half surrogate pairs, where the CLI has cut a text.
        return json.loads(line)
    except ValueError as error:  # also for bad UTF-8
        raise CLIJSONDecodeError(line=_text(line), reason=str(error)) from error


def _text(line: bytes) -> str:
    return line.decode(errors="replace")


async def _no_prompt() -> AsyncIterator[dict[str, Any]]:
    return
    yield {}


# The SDK ends all processes in this set at exit.
in_forked_child(forget_children)
