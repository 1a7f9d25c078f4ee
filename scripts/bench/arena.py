"""Start, command and stop the processes of the contenders and of the API."""

import asyncio
import json
import os
import sys
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, cast

from harness.figures import Effort

HERE = Path(__file__).parent

PLAIN = "AnthropicModel, no Claude Code"
OURS = "ClaudeCodeModel"
OURS_IN_CLI = "ClaudeCodeModel, in the CLI's loop"
CLIENT = "SDK's client on a live process"
QUERY = "claude_agent_sdk.query()"
PEER = "pydantic-ai-claude-code"
KINDS = {
    PLAIN: "plain",
    OURS: "ours",
    OURS_IN_CLI: "ours_in_cli",
    CLIENT: "client",
    QUERY: "query",
    PEER: "peer",
}

# The slowest command, 32 runs at once in processes that all start first, takes half a minute on two cores.
_ANSWER_SECONDS = 300.0
# A normal exit takes a second; the CLI's processes exit with it.
_END_SECONDS = 20.0
# A line of figures; the line of the API has a number for each request.
_LINE_BYTES = 1 << 22


class Talker:
    """A process that answers each line with a line."""

    def __init__(self, process: Process, name: str) -> None:
        self._process, self._name = process, name

    @property
    def pid(self) -> int:
        """Return its process id."""
        return self._process.pid

    async def ask(self, line: str) -> Any:
        """Send a line, and return the JSON of the answer.

        Raises:
            RuntimeError: The process exited.
        """
        cast("StreamWriter", self._process.stdin).write(line.encode() + b"\n")
        return await self.read()

    async def read(self) -> Any:
        """Return the JSON of the next line."""
        async with asyncio.timeout(_ANSWER_SECONDS):
            line = await cast("StreamReader", self._process.stdout).readline()
        if not line:
            raise RuntimeError(f"{self._name} ended with exit code {await self._process.wait()}")
        return json.loads(line)

    async def order(self, do: str, **arguments: object) -> dict[str, float]:
        """Send a command to a contender."""
        return await self.ask(json.dumps({"do": do, **arguments}))


@asynccontextmanager
async def talking(name: str, command: Iterable[str], environment: Mapping[str, str]) -> AsyncGenerator[Talker]:
    """Start a process; at exit close its input, and kill it if it does not stop."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=PIPE, env={**os.environ, **environment}, limit=_LINE_BYTES
    )
    try:
        yield Talker(process, name)
    finally:
        cast("StreamWriter", process.stdin).close()
        try:
            async with asyncio.timeout(_END_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


class Arena:
    """The API, and contenders connected to it."""

    def __init__(self, api: Talker, environment: Mapping[str, str], effort: Effort) -> None:
        self._api, self._environment, self._effort = api, environment, effort

    async def sizes(self) -> list[int]:
        """Return the bytes of each request to the API since the last call."""
        return await self._api.ask("")

    @asynccontextmanager
    async def contender(self, name: str, pool: int = 1) -> AsyncGenerator[tuple[Talker, float]]:
        """Yield a contender in a process of its own, and the milliseconds that its imports took."""
        python = str(self._effort.peer) if name == PEER else sys.executable
        command = (python, str(HERE / "worker.py"), KINDS[name], str(pool))
        async with talking(name, command, self._environment) as worker:
            started = await worker.read()
            yield worker, started["milliseconds"]

    @asynccontextmanager
    async def contenders(self, *names: str, pool: int = 1) -> AsyncGenerator[dict[str, Talker]]:
        """Yield several contenders; the peer only if it is available."""
        async with AsyncExitStack() as stack:
            made = {name: await stack.enter_async_context(self.contender(name, pool)) for name in self.present(names)}
            yield {name: worker for name, (worker, _) in made.items()}

    def present(self, names: Iterable[str]) -> list[str]:
        """Return the contenders that can be measured here."""
        return [name for name in names if name != PEER or self._effort.peer is not None]


@asynccontextmanager
async def arena(effort: Effort) -> AsyncGenerator[Arena]:
    """Start the API."""
    async with talking("the API", (sys.executable, str(HERE / "api.py")), {}) as api:
        environment: dict[str, str] = await api.read()
        # The peer runs the `claude` on its PATH; it has to be the CLI that the others run.
        path = os.pathsep.join((str(bundled_cli().parent), os.environ.get("PATH", "")))
        yield Arena(api, {**environment, "PATH": path}, effort)


def bundled_cli() -> Path:
    """Return the path of the CLI in the SDK's wheel."""
    import claude_agent_sdk

    return Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
