"""Runs the commands of the checks: bounded, in an environment of their own, and ended with all that they started."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

# The first install of a machine downloads the SDK; no step that works needs longer.
STEP_TIMEOUT = 900.0

# pytest ends its fixtures on an interrupt, and they stop their processes; one that does not get there is killed.
INTERRUPT_GRACE = 5.0


class CheckError(Exception):
    """A package does not keep its promise; the message is what to show."""


async def run(command: list[str], cwd: Path) -> str:
    """Run a command and return its output, errors among it.

    Raises:
        CheckError: it failed, or took longer than a step may.
    """
    process = await _start(command, cwd)
    try:
        async with asyncio.timeout(STEP_TIMEOUT):
            output = (await process.communicate())[0].decode(errors="replace")
    except BaseException as error:
        await _end_group(process)
        if isinstance(error, TimeoutError):
            raise CheckError(f"no end after {STEP_TIMEOUT:.0f} s: {' '.join(command)}") from None
        raise
    if process.returncode:
        raise CheckError(f"exit code {process.returncode}: {' '.join(command)}\n{output.rstrip()}")
    return output


async def _start(command: list[str], cwd: Path) -> asyncio.subprocess.Process:
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *command,
            cwd=cwd,
            env=clean_environment(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            # A group of its own: Ctrl-C reaches this script alone, which then ends the groups one after the other.
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        # Cancelled itself, it would end the command, and not what that may have started by now.
        with suppress(OSError):  # there is no such command
            await _end_group(await starting)
        raise


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


def clean_environment() -> dict[str, str]:
    """Return the environment of this process without what points at the workspace's, and marked as CI."""
    foreign = {"VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "UV_PROJECT_ENVIRONMENT", "UV_PROJECT", "PYTEST_ADDOPTS"}
    kept = {key: value for key, value in os.environ.items() if key not in foreign}
    # Hypothesis then does not take a busy machine, which this script makes, for a slow test.
    return {**kept, "CI": "true"}
