"""The guard around a tool: an exception becomes a failure that the model can read.

This module knows no frames, handlers or results, so that other servers of tools can use it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Self, TypeVar

T = TypeVar("T")

_log = logging.getLogger("cc_ipc")

# The model reads the message, and an exception may quote megabytes of input.
_MESSAGE_CHARACTERS = 20_000


class ToolFailure(NamedTuple):
    """An exception as the model reads it, without the traceback."""

    type: str
    """Class name."""
    message: str
    """Message, or "no message"."""

    @classmethod
    def of(cls, error: BaseException) -> Self:
        """Return the failure for an exception."""
        try:
            text = str(error)
        except Exception:
            text = ""
        cut = f"{text[:_MESSAGE_CHARACTERS]}…" if len(text) > _MESSAGE_CHARACTERS else text
        return cls(type(error).__name__, cut or "no message")

    def __str__(self) -> str:
        return f"{self.type}: {self.message}"


async def guarded(
    tool: str,
    run: Callable[[], Awaitable[T]],
    *,
    reraise: tuple[type[BaseException], ...] = (KeyboardInterrupt, GeneratorExit),
) -> T | ToolFailure:
    """Run a tool, and return the result, or the failure for an exception, which is logged.

    Args:
        tool: Tool name for the log.
        run: Function that runs the tool.
        reraise: Exceptions that are meant for the process, not for the model.

    Raises:
        asyncio.CancelledError: The current task was cancelled. A tool that raises this itself has failed.
    """
    try:
        return await run()
    except reraise:
        raise
    # A tool built on a command line parser must not end the agent, and a panic in Rust must not hang the call.
    except BaseException as error:
        if isinstance(error, asyncio.CancelledError) and is_cancelled():
            raise
        _log.error("The tool %r failed", tool, exc_info=error)
        return ToolFailure.of(error)


def is_cancelled() -> bool:
    """Return true if the current task was cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
