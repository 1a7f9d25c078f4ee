"""Run commands for the checks, with a time limit and stopped with all child processes; create environments."""

import asyncio
import json
import os
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from workspace import ROOT, find_uv, read_members, read_toml

# Seconds. The first install on a machine downloads the SDK; no working step needs longer.
STEP_TIMEOUT = 900.0

# Seconds. pytest closes its fixtures on an interrupt, and they stop their processes; after this time it is killed.
INTERRUPT_GRACE = 5.0

# Variables that refer to the workspace's environment, change how pytest runs, or let each interpreter compile again.
FOREIGN = {
    "VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "UV_PROJECT_ENVIRONMENT", "UV_PROJECT", "PYTEST_ADDOPTS",
    "PYTHONDONTWRITEBYTECODE",
}  # fmt: skip


temporary_folder = partial(tempfile.TemporaryDirectory[str], prefix="cc-check-", ignore_cleanup_errors=True)


class CheckError(Exception):
    """A failed check; the message is for the user."""


async def run(command: list[str], cwd: Path, env: Mapping[str, str] | None = None) -> str:
    """Run a command and return its output, including stderr. `env` adds to this process's variables.

    Raises:
        CheckError: The command failed, or exceeded the time limit.
    """
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *command,
            cwd=cwd,
            env={key: value for key, value in os.environ.items() if key not in FOREIGN} | dict(env or {}),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            # Own process group: Ctrl-C reaches this script alone, which then stops group after group.
            start_new_session=True,
        )
    )
    try:
        # Shielded: a cancelled start would stop the command, but not child processes that it started already.
        process = await asyncio.shield(starting)
        async with asyncio.timeout(STEP_TIMEOUT):
            output = (await process.communicate())[0].decode(errors="replace")
    except BaseException as error:
        with suppress(OSError):  # the command does not exist
            await _end_group(await starting)
        if isinstance(error, TimeoutError):
            raise CheckError(f"timeout after {STEP_TIMEOUT:.0f} s: {' '.join(command)}") from None
        raise
    if process.returncode:
        raise CheckError(f"exit code {process.returncode}: {' '.join(command)}\n{output.rstrip()}")
    return output


async def _end_group(process: asyncio.subprocess.Process) -> None:
    if sys.platform == "win32":
        raise NotImplementedError("needs POSIX")
    try:
        await _signal_group(process, signal.SIGINT)
    finally:
        # Also after the first process has exited, since its children may still run, and when the user does not wait.
        await _signal_group(process, signal.SIGKILL)


async def _signal_group(process: asyncio.subprocess.Process, number: int) -> None:
    if sys.platform != "win32":
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
    # Bounded even after a kill: `wait()` needs closed output, too, which another process may keep open.
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), INTERRUPT_GRACE)


async def create_empty(folder: Path, python: str) -> str:
    """Create an empty environment in a folder, for a Python version or path; return the interpreter."""
    await run([*find_uv(), "venv", "--quiet", "--clear", "--no-project", f"--python={python}", "venv"], folder)
    return str(folder / "venv" / "bin" / "python")


async def create(folder: Path, wanted: Iterable[str], pins: Iterable[str], overrides: Iterable[str]) -> str:
    """Create an environment with all workspace packages and others in a folder; return the interpreter.

    Raises:
        CheckError: No versions satisfy them, or no index can be reached.
    """
    build = read_toml(ROOT / "pyproject.toml")["tool"]["uv"]["build-constraint-dependencies"]
    for name, lines in (("constraints.txt", pins), ("build.txt", build), ("overrides.txt", overrides)):
        (folder / name).write_text("\n".join(lines), encoding="utf-8")
    python = await create_empty(folder, sys.executable)
    # Compiled: else each interpreter would compile again where the cache is read-only. Refreshed: uv does not notice
    # changed sources.
    options = ["--compile-bytecode", *(f"--refresh-package={path.name}" for path in read_members())]
    limits = ["--constraints=constraints.txt", "--build-constraints=build.txt", "--overrides=overrides.txt"]
    await run([*find_uv(), "pip", "install", f"--python={python}", *options, *limits, *wanted], folder)
    return python


def type_check(
    folder: Path, python: str, include: Iterable[Path], exclude: Iterable[Path] = (), **settings: Any
) -> list[str]:
    """Write the type checker's settings for some files into a folder; return the command."""
    # An absolute path would be ignored.
    paths = {"include": include, "exclude": exclude}
    relative = {name: [os.path.relpath(path, folder) for path in listed] for name, listed in paths.items()}
    settings = {"typeCheckingMode": "strict", "pythonVersion": "3.11", **relative, **settings}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    return [python, "-m", "pyright", f"--project={folder}", f"--pythonpath={python}"]


@asynccontextmanager
async def wheel(version: str) -> AsyncGenerator[tuple[Path, str]]:
    """Fetch a claude-agent-sdk version; yield the CLI in the wheel, and the SDK's version.

    Raises:
        CheckError: The wheel has no CLI, or cannot be fetched.
    """
    requirement = "claude-agent-sdk" if version == "newest" else f"claude-agent-sdk=={version}"
    with tempfile.TemporaryDirectory(prefix="check-cli-") as name:
        install = ["pip", "install", "--quiet", "--no-deps", "--only-binary=:all:", f"--target={name}", requirement]
        # Outside the repository, where the pins would apply.
        await run([*find_uv(), *install], Path(name))
        yield _cli_in(Path(name))


def _cli_in(folder: Path) -> tuple[Path, str]:
    [metadata] = folder.glob("claude_agent_sdk-*.dist-info")
    cli = folder / "claude_agent_sdk" / "_bundled" / "claude"
    if not cli.exists():
        raise CheckError(f"{metadata.name} brings no CLI for this platform")
    return cli, metadata.name.removeprefix("claude_agent_sdk-").removesuffix(".dist-info")


async def check_each(checks: Mapping[str, Callable[[], Awaitable[str]]]) -> list[str]:
    """Run checks, two at a time, and print the last line that each prints; return the failures."""
    failed: list[str] = []
    slots = asyncio.Semaphore(2)

    async def report(name: str) -> None:
        async with slots:
            try:
                print(f"{name:19} {(await checks[name]()).rstrip().rpartition(chr(10))[2]}", flush=True)
            except CheckError as error:
                failed.append(f"{name}: {error}")

    async with asyncio.TaskGroup() as group:
        for name in checks:
            group.create_task(report(name))
    return failed


def finish(work: Coroutine[None, None, list[str]]) -> int:
    """Run a script's main function, print the failures, and return the exit code.

    SIGINT and SIGTERM cancel the function, which stops all processes.
    """

    async def working() -> list[str]:
        task = asyncio.ensure_future(work)
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        return await task

    try:
        failed = asyncio.run(working())
    except asyncio.CancelledError:
        print("interrupted", file=sys.stderr)
        return 130
    except CheckError as error:
        failed = [str(error)]
    for problem in failed:
        print(f"\n--- {problem}")
    return 1 if failed else 0
