"""The scripted API, as the soak sees it: a process that is told what to do, line by line."""

import asyncio
import json
import os
import sys
from collections import defaultdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

_SCRIPTS = Path(__file__).parents[1]
# A command takes milliseconds, and the start of the interpreter a second; a busy machine takes longer.
_ANSWER_SECONDS = 300.0
_LONGEST_LINE = 2**22


class Api:
    """The process of the API. Use it with `async with`.

    Args:
        temporary: The folder for its own temporary files, which is not the one that is made full.
    """

    def __init__(self, temporary: str) -> None:
        self._temporary = temporary
        self._lock = asyncio.Lock()
        self.requests = 0
        """How many requests have come."""
        self.hits: defaultdict[str, set[int]] = defaultdict(set)
        """By the mark of a run: the numbers of the faults that fell on its requests."""
        self.errors: list[str] = []
        """What went wrong in the script of the API itself."""

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    async def fail(self, fault: int, **how: Any) -> None:
        """Let a request fail that comes soon; see `LoopbackServer.fail_next()`."""
        await self._do("fail", fault=fault, **how)

    async def stop(self) -> None:
        """Break all connections off, and take no more."""
        await self._do("stop")

    async def start(self) -> None:
        """Serve again, at the same address."""
        await self._do("start")

    async def drain(self) -> None:
        """Have the faults used up that have not fallen on anybody yet."""
        await self._do("drain")

    async def tell(self) -> None:
        """Bring `requests`, `hits` and `errors` up to date."""
        told = await self._do("tell")
        self.requests += told["requests"]
        self.errors += told["errors"]
        for fault, mark in told["hits"]:
            if mark is not None:
                self.hits[mark].add(fault)

    async def _do(self, what: str, **more: Any) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None  # noqa: S101  # both are pipes
        # One at a time, and to its end also if the caller is cancelled, or answers would go to others.
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
            start_new_session=True,  # Ctrl-C is for the soak, which ends it
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
