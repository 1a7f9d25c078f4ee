"""Programs as hooks: JSON on stdin; exit code and output have the same meaning as in the CLI settings.

No shell is involved, so the input can never run as a command.
"""

import asyncio
import json
import logging
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import anyio
from anyio.abc import ByteReceiveStream, Process
from claude_agent_sdk import HookJSONOutput

from .calls import mark_of_programs
from .hook import Hook, HookResult, HookReturn, OnError

logger = logging.getLogger(__name__)

# An answer has some hundred bytes. It goes to the CLI as a line, and the reason for a refusal to the model.
_MAX_STDOUT_BYTES = 1024 * 1024
_MAX_STDERR_BYTES = 64 * 1024

# A killed program has only to be reaped.
_REAP_SECONDS = 1.0

# For these events the CLI passes a hook output to the model.
_TEXT_IS_CONTEXT = frozenset({"SessionStart", "UserPromptExpansion", "UserPromptSubmit"})

_EXIT_CODE_TO_BLOCK = 2


class CommandFailedError(Exception):
    """A hook program was killed, or printed too much or an invalid answer."""


def command_hook(
    event: str,
    argv: Sequence[str | os.PathLike[str]],
    *,
    matcher: str | None = None,
    timeout: float = 60.0,
    on_error: OnError = "block",
) -> Hook[Mapping[str, Any]]:
    """Make a hook of a program.

    It gets the event input as JSON on stdin, runs in the session's working folder, whose path is in
    `CLAUDE_PROJECT_DIR`, and answers like a command in the CLI settings:

    - Exit code 0: JSON on stdout is the answer, such as `{"decision": "block", "reason": "…"}`, and missing fields have
      no effect. Any other text goes to the model if the event is a prompt or a session start.
    - Exit code 2: the event is blocked, with stderr as the reason.
    - Any other exit code: it is logged, without any effect.

    A program fails if it cannot be started, takes too long, is killed by a signal, prints more than 1 MiB, or 64 KiB on
    stderr, or prints JSON that is not an answer. At the timeout, and when the turn is interrupted, it is killed with
    the whole process group; also when Python dies, on a system that has `/proc`.

    Args:
        event: A hook event, as for `hook()`.
        argv: The program and the arguments.
        matcher: The tools, or other subjects of the event, as for `hook()`.
        timeout: Seconds until it is killed and has failed.
        on_error: The effect of a failure.

    Raises:
        ValueError: The CLI has no such event or would read the matcher differently, or there is no program.
        TypeError: `argv` is a single text, or holds another type.
        re.error: The matcher is not a regular expression.
    """
    if isinstance(argv, str):
        raise TypeError(f"a command is a sequence of texts, not a text for a shell: {argv!r}")
    command = [os.fspath(part) for part in argv]
    if not command or not all(type(part) is str for part in command):
        raise ValueError(f"a command is a program and the arguments, all texts, not {argv!r}")
    name = Path(command[0]).name

    async def call(input: Mapping[str, Any]) -> HookReturn:
        exit_code, stdout, stderr = await _run(command, json.dumps(input).encode(), str(input.get("cwd", "")))
        if exit_code == _EXIT_CODE_TO_BLOCK:
            return HookResult.deny(stderr or f"{name} blocked this.")
        if exit_code < 0:
            raise CommandFailedError(f"it was ended by signal {-exit_code}: {stderr}")
        if exit_code > 0:
            logger.warning("The hook %s on %s exited with %d: %s", name, event, exit_code, stderr)
            return HookResult.no_opinion()
        if not stdout.startswith("{"):
            return HookResult(context=stdout if event in _TEXT_IS_CONTEXT else "")
        try:
            return cast(HookJSONOutput, json.loads(stdout))
        except ValueError as error:
            raise CommandFailedError(f"it printed invalid JSON: {error}") from error

    call.__qualname__ = name
    return Hook(event, call, matcher, timeout, on_error, runs_here=True)


async def _run(argv: list[str], data: bytes, folder: str) -> tuple[int, str, str]:
    """Run a program; return exit code, stdout and stderr."""
    process = await _start(argv, folder)
    try:
        # Concurrently: otherwise both sides could wait for each other.
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_feed(process, data))
            stdout = tasks.create_task(_read("stdout", process.stdout, _MAX_STDOUT_BYTES))
            stderr = tasks.create_task(_read("stderr", process.stderr, _MAX_STDERR_BYTES))
        return await process.wait(), stdout.result(), stderr.result()
    except ExceptionGroup as group:
        _kill(process)
        raise group.exceptions[0] from None
    except BaseException:
        _kill(process)
        raise
    finally:
        await _reap(process)


async def _start(argv: list[str], folder: str) -> Process:
    starting = asyncio.ensure_future(
        anyio.open_process(
            argv,
            cwd=folder if folder and await anyio.Path(folder).is_dir() else None,
            env={**os.environ, **mark_of_programs.get(), "CLAUDE_PROJECT_DIR": folder},
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        # Not a cancelled start: it would end the program, but not the children that it may have by now.
        with suppress(OSError):
            _kill(process := await starting)
            await _reap(process)
        raise


async def _feed(process: Process, data: bytes) -> None:
    # A program may answer before it has read all input.
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        if process.stdin is not None:
            await process.stdin.send(data)
            await process.stdin.aclose()


async def _read(name: str, stream: ByteReceiveStream | None, limit: int) -> str:
    output = b""
    async for chunk in cast(ByteReceiveStream, stream):
        output += chunk
        if len(output) > limit:
            raise CommandFailedError(f"it printed more than {limit:,} bytes on {name}")
    return output.decode(errors="replace").strip()


async def _reap(process: Process) -> None:
    with anyio.CancelScope(shield=True), anyio.move_on_after(_REAP_SECONDS):
        await process.aclose()


def _kill(process: Process) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
