"""Runs the commands of the checks: bounded, in an environment of their own, and ended with all that they started."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path

# The first install of a machine downloads the SDK; no step that works needs longer.
STEP_TIMEOUT = 900.0

# pytest ends its fixtures on an interrupt, and they stop their processes; one that does not get there is killed.
INTERRUPT_GRACE = 5.0

# What points at the workspace's environment, or changes how pytest runs.
FOREIGN = {"VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "UV_PROJECT_ENVIRONMENT", "UV_PROJECT", "PYTEST_ADDOPTS"}


class CheckError(Exception):
    """A package does not keep its promise; the message is what to show."""


async def run(command: list[str], cwd: Path) -> str:
    """Run a command and return its output, errors among it.

    Raises:
        CheckError: it failed, or took longer than a step may.
    """
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *command,
            cwd=cwd,
            env={key: value for key, value in os.environ.items() if key not in FOREIGN},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            # A group of its own: Ctrl-C reaches this script alone, which then ends the groups one after the other.
            start_new_session=True,
        )
    )
    try:
        # Shielded: a start that is cancelled would end the command, and not what that may have started by now.
        process = await asyncio.shield(starting)
        async with asyncio.timeout(STEP_TIMEOUT):
            output = (await process.communicate())[0].decode(errors="replace")
    except BaseException as error:
        with suppress(OSError):  # there is no such command
            await _end_group(await starting)
        if isinstance(error, TimeoutError):
            raise CheckError(f"no end after {STEP_TIMEOUT:.0f} s: {' '.join(command)}") from None
        raise
    if process.returncode:
        raise CheckError(f"exit code {process.returncode}: {' '.join(command)}\n{output.rstrip()}")
    return output


async def _end_group(process: asyncio.subprocess.Process) -> None:
    """Stop a process and all that it started."""
    try:
        _signal_group(process, signal.SIGINT)
        await _wait(process)
    finally:
        # Also when the first process is gone: what it started may not be. And also when the user does not want to wait.
        _signal_group(process, signal.SIGKILL)
    await _wait(process)


def _signal_group(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


async def _wait(process: asyncio.subprocess.Process) -> None:
    # Bounded even after a kill: it also waits for the end of the output, which a process elsewhere may hold open.
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), INTERRUPT_GRACE)


async def check_each(checks: Mapping[str, Callable[[], Awaitable[str]]]) -> list[str]:
    """Make checks, two at a time, and print the last line of what each one says; return what went wrong."""
    failed: list[str] = []
    slots = asyncio.Semaphore(2)

    async def report(name: str) -> None:
        async with slots:
            try:
                print(f"{name:14}{(await checks[name]()).rstrip().rpartition(chr(10))[2]}", flush=True)
            except CheckError as error:
                failed.append(f"{name}: {error}")

    async with asyncio.TaskGroup() as group:
        for name in checks:
            group.create_task(report(name))
    return failed


def finish(work: Coroutine[None, None, list[str]]) -> int:
    """Do the work of a script, print what went wrong, and return the exit code.

    SIGINT and SIGTERM cancel the work, which ends all that it has started.
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
