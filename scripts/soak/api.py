"""Client of the scripted API's process, which receives commands line by line."""

import asyncio
import json
import os
import sys
from collections import defaultdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

_SCRIPTS = Path(__file__).parents[1]
# Seconds. A command takes milliseconds, and the start of the interpreter a second; a busy machine takes longer.
_ANSWER_SECONDS = 300.0
_LONGEST_LINE = 2**22


class Api:
    """The process of the API. Use it with `async with`.

    Args:
        temporary: The folder for its own temporary files, which is not the one that is filled.
    """

    def __init__(self, temporary: str) -> None:
        self._temporary = temporary
        self._lock = asyncio.Lock()
        self.requests = 0
        """Number of requests so far."""
        self.hits: defaultdict[str, set[int]] = defaultdict(set)
        """Numbers of the faults that affected the requests of a run, by its mark."""
        self.errors: list[str] = []
        """Errors in the script of the API itself."""

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self._process.pid

    async def fail(self, fault: int, **how: Any) -> None:
        """Let one of the next requests fail; see `LoopbackServer.fail_next()`."""
        await self._do("fail", fault=fault, **how)

    async def stop(self) -> None:
        """Close all connections, and accept no new ones."""
        await self._do("stop")

    async def start(self) -> None:
        """Serve again, at the same address."""
        await self._do("start")

    async def drain(self) -> None:
        """Use up the faults that have not affected a request yet."""
        await self._do("drain")

    async def update(self) -> None:
        """Update `requests`, `hits` and `errors`."""
        news = await self._do("update")
        self.requests += news["requests"]
        self.errors += news["errors"]
        for fault, mark in news["hits"]:
            if mark is not None:
                self.hits[mark].add(fault)

    async def _do(self, what: str, **more: Any) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None  # noqa: S101  # both are pipes
        # One command at a time, and to its end even if the caller is cancelled; else answers would go to other callers.
        async with self._lock, asyncio.timeout(_ANSWER_SECONDS):
            stdin.write(json.dumps({"do": what, **more}).encode() + b"\n")
            reading = asyncio.ensure_future(stdout.readline())
            try:
                line = await asyncio.shield(reading)
            except asyncio.CancelledError:
                await asyncio.wait({reading})
                raise
        return cast("dict[str, Any]", json.loads(line))

    async def __aenter__(self) -> Self:
        paths = os.pathsep.join(filter(None, [str(_SCRIPTS), os.environ.get("PYTHONPATH")]))
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "soak.api_process",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "TMPDIR": self._temporary, "PYTHONPATH": paths},
            limit=_LONGEST_LINE,
            start_new_session=True,  # Ctrl-C is for the soak, which stops this process
        )
        assert self._process.stdout is not None  # noqa: S101  # it is a pipe
        async with asyncio.timeout(_ANSWER_SECONDS):
            self.env = cast("dict[str, str]", json.loads(await self._process.stdout.readline()))
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None  # noqa: S101  # it is a pipe
        self._process.stdin.close()
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
