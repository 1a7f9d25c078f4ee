"""The CLI process: spawned by the SDK, watched and ended by us.

The one module that touches the SDK's private subprocess transport. The SDK keeps the class private, yet nothing
public starts the CLI with its options on the command line and also gives the process's id, exit code and a way to
end it at once. `tests/test_sdk_internals.py` notices when what is used here changes.
"""

from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import anyio
from anyio.abc import Process
from claude_agent_sdk import ClaudeAgentOptions, ProcessError, Transport
from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport
from typing_extensions import override

from cc_types import ProcessExitedError

__all__ = ["CLIProcess"]

# The last lines say why; a CLI that fails can print kilobytes of its own source.
_STDERR_LINES = 40


class CLIProcess(Transport):
    """A Claude Code CLI on stdin and stdout, as the SDK's `Transport`.

    Unlike the SDK's own, it raises `ProcessExitedError` as soon as the process ends unasked, with any exit code, and
    it ends the process quickly: at once when `hurry` is set, otherwise after `grace` seconds of the process's own.
    """

    def __init__(self, options: ClaudeAgentOptions, *, grace: float) -> None:
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        self._caller_stderr = options.stderr
        self._inner = SubprocessCLITransport(prompt=_no_prompt(), options=replace(options, stderr=self._on_stderr))
        self._grace = grace
        self._closing = False
        self.hurry = False
        """Set while a turn runs: such a process does not end when its stdin does."""

    @property
    def pid(self) -> int | None:
        """The process's id, or None before it is started and after it is closed."""
        process = self._process
        return process.pid if process is not None else None

    @property
    def stderr_tail(self) -> str:
        """The last lines the process wrote to stderr."""
        return "\n".join(self._stderr)

    @override
    async def connect(self) -> None:
        await self._inner.connect()

    @override
    async def write(self, data: str) -> None:
        await self._inner.write(data)

    @override
    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        process = self._process
        try:
            async for message in self._inner.read_messages():
                yield message
        except ProcessError as error:
            raise self._exited(error.exit_code) from error
        if not self._closing:
            raise self._exited(process.returncode if process is not None else None)

    @override
    async def end_input(self) -> None:
        await self._inner.end_input()

    @override
    def is_ready(self) -> bool:
        return self._inner.is_ready()

    @override
    async def close(self) -> None:
        self._closing = True
        with anyio.CancelScope(shield=True):
            if (process := self._process) is not None:
                await self._end(process)
            # What is left to do here takes no time: the process has ended.
            await self._inner.close()

    def terminate(self) -> None:
        """Ask the process to end, without waiting; for when no loop runs any more."""
        self._closing = True
        if (process := self._process) is not None:
            with suppress(ProcessLookupError):
                process.terminate()

    async def _end(self, process: Process) -> None:
        if not self.hurry:
            with anyio.move_on_after(self._grace):
                await self._inner.end_input()
                await process.wait()
        for signal in (process.terminate, process.kill):
            if process.returncode is not None:
                return
            with suppress(ProcessLookupError):
                signal()
            with anyio.move_on_after(self._grace):
                await process.wait()

    @property
    def _process(self) -> Process | None:
        return self._inner._process  # pyright: ignore[reportPrivateUsage]

    def _exited(self, exit_code: int | None) -> ProcessExitedError:
        return ProcessExitedError(exit_code=exit_code, stderr_tail=self.stderr_tail)

    def _on_stderr(self, line: str) -> None:
        self._stderr.append(line)
        if self._caller_stderr is not None:
            self._caller_stderr(line)


async def _no_prompt() -> AsyncIterator[dict[str, Any]]:
    return
    yield {}
