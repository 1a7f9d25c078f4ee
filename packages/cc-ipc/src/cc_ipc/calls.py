"""One call of a tool, from the request to the response: whatever a handler does, there is an answer.

It knows handlers and messages, and nothing of connections. A response always comes back; only the cancellation of the
call itself, and what must end the process, go through.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import cast

from .errors import (
    InvalidToolResultError,
    LocalProtocolError,
    ToolNotFoundError,
)
from .framing import encode_frame
from .messages import CallToolParams, IPCErrorResponse, ToolHandler, error_response
from .results import checked_result

__all__ = ["ToolCall", "answer", "current_call", "error_frame"]

_log = logging.getLogger("cc_ipc")

# The model reads it, and an exception may quote megabytes of what it choked on.
_MESSAGE_CHARACTERS = 20_000


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The call that a handler is running."""

    name: str
    """Name of the tool."""
    tool_use_id: str | None
    """The model's id of the call, or `None` where the bridge was not told."""


_current: ContextVar[ToolCall | None] = ContextVar("cc_ipc_current_call", default=None)


def current_call() -> ToolCall | None:
    """Return the call that the running handler answers, or `None` outside of one."""
    return _current.get()


async def answer(params: CallToolParams, handlers: Mapping[str, ToolHandler], seconds: float | None) -> bytes:
    """Run a tool and return the response as a frame.

    Args:
        params: The call.
        handlers: What runs each tool.
        seconds: How long the tool may take; `None`: as long as it takes.

    Raises:
        asyncio.CancelledError: The call was cancelled from outside. A handler that raises this by itself failed.
    """
    name = params["name"]
    handler = handlers.get(name)
    if handler is None:
        return error_frame(ToolNotFoundError(name=name, known=sorted(handlers)))
    _current.set(ToolCall(name, params.get("tool_use_id")))
    try:
        result = checked_result(await _run(handler, params, seconds))
        return encode_frame({"result": result})
    except (InvalidToolResultError, LocalProtocolError) as error:
        _log.error("The result of the tool %r cannot be sent: %s", name, error)
        return error_frame(error)
    except asyncio.CancelledError as error:
        if _is_cancelled():
            raise
        return _report(name, error)
    except (Exception, SystemExit) as error:  # a tool built on a command line parser must not end the agent
        return _report(name, error)


async def _run(handler: ToolHandler, params: CallToolParams, seconds: float | None) -> object:
    # Only the owner of the tools knows how long one may take, so there is no limit by default.
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await handler(cast("dict[str, object]", params["arguments"]))
    except TimeoutError as error:
        if limit.expired():
            raise TimeoutError(f"the tool {params['name']!r} did not answer within {seconds:g} seconds") from error
        raise


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _report(name: str, error: BaseException) -> bytes:
    _log.error("The tool %r raised", name, exc_info=error)
    return error_frame(error)


def error_frame(error: BaseException) -> bytes:
    """Return the response that reports an exception, as a frame: class and message, and no traceback."""
    kind = type(error).__name__
    message = _message(error)
    response: IPCErrorResponse = error_response(kind, message)
    try:
        return encode_frame(response)
    except LocalProtocolError:  # text that UTF-8 cannot carry
        return encode_frame(error_response(kind, message.encode(errors="backslashreplace").decode()))


def _message(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:
        text = ""
    if not text:
        return "it was raised without a message"
    return text if len(text) <= _MESSAGE_CHARACTERS else f"{text[:_MESSAGE_CHARACTERS]}…"
