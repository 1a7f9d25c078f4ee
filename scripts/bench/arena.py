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
# The peer runs the first `claude` on PATH; it has to be the CLI that the others run.
CLI = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"

PLAIN = "AnthropicModel, no Claude Code"
OURS = "ClaudeCodeModel"
OURS_IN_CLI = "ClaudeCodeModel, in the CLI's loop"
OURS_OVER_BRIDGE = "ClaudeCodeModel, in the CLI's loop, over a bridge"
CLIENT = "SDK's client on a live process"
QUERY = "claude_agent_sdk.query()"
PEER = "pydantic-ai-claude-code"
KINDS = {
    PLAIN: "plain", OURS: "ours", OURS_IN_CLI: "sdk", OURS_OVER_BRIDGE: "stdio", CLIENT: "client", QUERY: "query",
    PEER: "peer",
}  # fmt: skip

# The last pydantic-ai that the peer supports, and packages which that version needs; so ours cannot be beside it.
PEER_PACKAGES = (
    "pydantic-ai-claude-code", "pydantic-ai-slim==1.30.0", "pydantic-ai==1.30.0", "opentelemetry-api<1.39",
    "opentelemetry-sdk<1.39",
)  # fmt: skip
# Outside the repository, where the pins would apply. `uv run` sets the path to uv, which may not be on PATH.
PEER_PYTHON = (
    os.environ.get("UV", "uv"), "run", "--quiet", "--isolated", "--no-project", f"--directory={tempfile.gettempdir()}",
    f"--python={sys.executable}", *(f"--with={package}" for package in PEER_PACKAGES), "python",
)  # fmt: skip


def find_peer() -> tuple[bool, str]:
    """Install the peer's packages; return true if that is possible, and a note."""
    code = "from importlib.metadata import version; print(version('pydantic-ai-claude-code'))"
    try:
        done = subprocess.run([*PEER_PYTHON, "-c", code], capture_output=True, text=True, timeout=INSTALL_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return False, f"The peer was not measured: {error}"
    if done.returncode:
        return False, f"The peer was not measured: {done.stderr.strip()}"
    return True, (
        f"The peer is pydantic-ai-claude-code {done.stdout.strip()} with pydantic-ai 1.30.0. It writes the prompt into "
        "a file, which a real model first reads by a tool call; the figures are without this second request."
    )


@asynccontextmanager
async def scripted_api() -> AsyncGenerator[dict[str, str]]:
    """Run `api.py`, and yield the environment for clients."""
    async with line_process("the API", (sys.executable, str(HERE / "api.py")), {}) as api:
        yield await api.read()


@asynccontextmanager
async def contenders(env: Mapping[str, str], effort: Effort, *names: str) -> AsyncGenerator[dict[str, LineProcess]]:
    """Yield contenders in separate processes, all imports done; the peer only if it is available."""
    path = os.pathsep.join((str(CLI.parent), os.environ.get("PATH", "")))
    async with AsyncExitStack() as stack:
        workers: dict[str, LineProcess] = {}
        for name in (name for name in names if name != PEER or effort.peer):
            command = (*(PEER_PYTHON if name == PEER else (sys.executable,)), str(HERE / "contenders.py"), KINDS[name])
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
