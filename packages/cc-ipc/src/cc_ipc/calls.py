"""One tool call, from request to response. A call always gets a response, even if its handler fails.

This module knows handlers and messages, and nothing of connections. Only the cancellation of the call and exceptions
that must end the process are raised to the caller.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import cast

from .errors import InvalidToolResultError, LocalProtocolError, ToolNotFoundError
from .framing import encode_frame
from .messages import CallToolParams, IPCErrorResponse, ToolHandler, error_response
from .results import validate_result

__all__ = ["CurrentCall", "answer", "current_call", "error_frame"]

_log = logging.getLogger("cc_ipc")

# The model reads the message, and an exception may quote megabytes of its input.
_MESSAGE_CHARACTERS = 20_000


@dataclass(frozen=True, slots=True)
class CurrentCall:
    """The call that a handler is running."""

    name: str
    """Name of the tool."""
    tool_use_id: str | None
    """The model's id of the call, or `None` if the host sent none."""


_current: ContextVar[CurrentCall | None] = ContextVar("cc_ipc_current_call", default=None)


def current_call() -> CurrentCall | None:
    """Return the call that the current handler runs for, or `None` outside of a handler."""
    return _current.get()


async def answer(params: CallToolParams, handlers: Mapping[str, ToolHandler], seconds: float | None) -> bytes:
    """Run a tool and return the response as a frame.

    Args:
        params: The parameters of the call.
        handlers: The handler of each tool, by name.
        seconds: Time limit of the tool; `None` for no limit.

    Raises:
        asyncio.CancelledError: The call was cancelled from outside. A handler that raises this itself has failed.
        KeyboardInterrupt, GeneratorExit: The handler raised it.
    """
    name = params["name"]
    handler = handlers.get(name)
    if handler is None:
        return error_frame(ToolNotFoundError(name=name, known=sorted(handlers)))
    _current.set(CurrentCall(name, params.get("tool_use_id")))
    try:
        result = validate_result(await _run(handler, params, seconds))
        return encode_frame({"result": result})
    except (InvalidToolResultError, LocalProtocolError) as error:
        _log.error("The result of the tool %r cannot be sent: %s", name, error)
        return error_frame(error)
    except asyncio.CancelledError as error:
        if _is_cancelled():
            raise
        return _report(name, error)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    # A tool built on a command line parser must not end the agent, and a panic of one in Rust must not hang its call.
    except BaseException as error:
        return _report(name, error)


async def _run(handler: ToolHandler, params: CallToolParams, seconds: float | None) -> object:
    # Only the owner of a tool knows how long it may take, so there is no limit by default.
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
    """Return the response that reports an exception, as a frame: class and message, without the traceback."""
    kind = type(error).__name__
    message = _message(error)
    response: IPCErrorResponse = error_response(kind, message)
    try:
        return encode_frame(response)
    except LocalProtocolError:  # text that UTF-8 cannot encode
        return encode_frame(error_response(kind, message.encode(errors="backslashreplace").decode()))


def _message(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:
        text = ""
    if not text:
        return "no message"
    return text if len(text) <= _MESSAGE_CHARACTERS else f"{text[:_MESSAGE_CHARACTERS]}…"
