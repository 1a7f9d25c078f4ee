"""Processes for contenders and the API, and rounds with the same order for all contenders."""

import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import claude_agent_sdk

from line_process import LineProcess, line_process

from .harness import Effort, rotated

HERE = Path(__file__).parent
# About a hundred packages over a slow connection.
INSTALL_SECONDS = 600.0
# Peers run the first `claude` on PATH; it has to be the CLI that the others run.
CLI = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"

PLAIN = "AnthropicModel, no Claude Code"
OURS = "ClaudeCodeModel"
OURS_IN_CLI = "ClaudeCodeModel, in the CLI's loop"
OURS_OVER_BRIDGE = "ClaudeCodeModel, in the CLI's loop, over a bridge"
CLIENT = "SDK's client on a live process"
QUERY = "claude_agent_sdk.query()"
PEER = "pydantic-ai-claude-code"
LANGCHAIN_PEER = "langchain-claude-cli"
KINDS = {
    PLAIN: "plain", OURS: "ours", OURS_IN_CLI: "sdk", OURS_OVER_BRIDGE: "stdio", CLIENT: "client", QUERY: "query",
    PEER: "peer", LANGCHAIN_PEER: "langchain",
}  # fmt: skip

# The first needs an old pydantic-ai, and packages which that version needs; so ours cannot be beside it.
PEER_PACKAGES = {
    PEER: (
        PEER, "pydantic-ai-slim==1.30.0", "pydantic-ai==1.30.0", "opentelemetry-api<1.39", "opentelemetry-sdk<1.39",
    ),
    LANGCHAIN_PEER: (LANGCHAIN_PEER,),
}  # fmt: skip
NOTE = (
    f"{PEER} runs with pydantic-ai 1.30.0, and writes the prompt into a file, which a real model first reads by a tool "
    "call; the figures are without this second request."
)


def _python(name: str) -> tuple[str, ...]:
    """Return the command of a contender's Python."""
    if name not in PEER_PACKAGES:
        return (sys.executable,)
    # Outside the repository, where the pins would apply. `uv run` sets the path to uv, which may not be on PATH.
    return (
        os.environ.get("UV", "uv"), "run", "--quiet", "--isolated", "--no-project", f"--python={sys.executable}",
        f"--directory={tempfile.gettempdir()}", *(f"--with={package}" for package in PEER_PACKAGES[name]), "python",
    )  # fmt: skip


def find_peers() -> tuple[bool, str]:
    """Install the peers' packages; return true if that is possible, and a note."""
    versions: list[str] = []
    for name in PEER_PACKAGES:
        code = f"from importlib.metadata import version; print(version('{name}'))"
        try:
            done = subprocess.run([*_python(name), "-c", code], capture_output=True, text=True, timeout=INSTALL_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            return False, f"The peers were not measured: {error}"
        if done.returncode:
            return False, f"The peers were not measured: {done.stderr.strip()}"
        versions.append(f"{name} {done.stdout.strip()}")
    return True, f"The peers are {' and '.join(versions)}. {NOTE}"


@asynccontextmanager
async def scripted_api() -> AsyncGenerator[dict[str, str]]:
    """Run `api.py`, and yield the environment for clients."""
    async with line_process("the API", (sys.executable, str(HERE / "api.py")), {}) as api:
        yield await api.read()


@asynccontextmanager
async def contenders(env: Mapping[str, str], effort: Effort, *names: str) -> AsyncGenerator[dict[str, LineProcess]]:
    """Yield contenders in separate processes, all imports done; peers only if they are available."""
    path = os.pathsep.join((str(CLI.parent), os.environ.get("PATH", "")))
    async with AsyncExitStack() as stack:
        workers: dict[str, LineProcess] = {}
        for name in (name for name in names if name not in PEER_PACKAGES or effort.peers):
            command = (*_python(name), str(HERE / "contenders.py"), KINDS[name])
            workers[name] = await stack.enter_async_context(line_process(name, command, {**env, "PATH": path}))
            await workers[name].read()
        yield workers


class Rounds:
    """The contenders' times in milliseconds, by name; the same index is the same round."""

    def __init__(self) -> None:
        self.milliseconds: dict[str, list[float]] = {}
        self.processor: dict[str, list[float]] = {}
        self.first: dict[str, list[float]] = {}
        self._number = 0

    async def play(
        self, workers: Mapping[str, LineProcess], do: str, *, counts: bool = True, **arguments: object
    ) -> None:
        """Send an order to all contenders in alternation; a warm-up round does not count."""
        self._number += 1
        times = {name: await workers[name].order(do, **arguments) for name in rotated(workers, self._number)}
        for name in workers if counts else ():
            for kind, value in times[name].items():
                getattr(self, kind).setdefault(name, []).append(value)

    async def begin(self, workers: Mapping[str, LineProcess], *, messages: int = 0, tool: bool = False) -> None:
        await self.play(workers, "begin", counts=False, messages=messages, tool=tool)
