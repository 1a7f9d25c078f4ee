"""A separate process that answers each JSON line on standard input with a JSON line."""

import asyncio
import json
import os
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

# Seconds. The slowest order, 32 runs at once in processes that all start first, takes half a minute on two cores.
_ANSWER_SECONDS = 300.0
# Seconds. A normal exit takes about a second; the CLI's processes exit with it.
_END_SECONDS = 20.0
_LINE_BYTES = 1 << 22


class LineProcess:
    """A process, for sequential orders."""

    def __init__(self, process: Process, name: str) -> None:
        self._process, self._name, self._lock = process, name, asyncio.Lock()

    async def read(self) -> Any:
        """Return the next line's JSON.

        Raises:
            RuntimeError: The process exited.
        """
        async with asyncio.timeout(_ANSWER_SECONDS):
            line = await cast("StreamReader", self._process.stdout).readline()
        if not line:
            raise RuntimeError(f"{self._name} ended with exit code {await self._process.wait()}")
        return json.loads(line)

    async def order(self, do: str, **arguments: object) -> Any:
        # Each order runs to its end even if the caller is cancelled; else answers would go to other callers.
        async with self._lock:
            cast("StreamWriter", self._process.stdin).write(json.dumps({"do": do, **arguments}).encode() + b"\n")
            reading = asyncio.ensure_future(self.read())
            try:
                return await asyncio.shield(reading)
            except asyncio.CancelledError:
                await asyncio.wait({reading})
                raise


@asynccontextmanager
async def line_process(name: str, command: Iterable[str], env: Mapping[str, str]) -> AsyncGenerator[LineProcess]:
    """Start a process with added variables; at exit close the input, and kill the process if it does not end."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=PIPE,
        stdout=PIPE,
        env={**os.environ, **env},
        limit=_LINE_BYTES,
        start_new_session=True,  # Ctrl-C is for this process, which closes the other's input
    )
    try:
        yield LineProcess(process, name)
    finally:
        cast("StreamWriter", process.stdin).close()
        try:
            async with asyncio.timeout(_END_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
