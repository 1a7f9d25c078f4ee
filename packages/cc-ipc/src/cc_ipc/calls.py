"""A tool call, from request to response. A call always gets a response, even if the handler fails."""

import asyncio
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import cast

from .errors import LocalProtocolError, ToolNotFoundError
from .framing import encode_frame
from .guard import ToolFailure, guarded
from .messages import CallToolParams, ToolHandler, error_response, validate_result


@dataclass(frozen=True, slots=True)
class CurrentCall:
    """The call that a handler is running."""

    name: str
    """Tool name."""
    tool_use_id: str | None
    """The id of the call, from the model, or `None` if the host sent none."""


_current: ContextVar[CurrentCall | None] = ContextVar("cc_ipc_current_call", default=None)


def current_call() -> CurrentCall | None:
    """Return the call that the current handler runs for, or `None` outside of a handler."""
    return _current.get()


async def answer(params: CallToolParams, handlers: Mapping[str, ToolHandler], seconds: float | None) -> bytes:
    """Run a tool and return the response as a frame. Without `seconds`, there is no time limit.

    Raises:
        asyncio.CancelledError: The call was cancelled from outside. A handler that raises this itself has failed.
        KeyboardInterrupt, GeneratorExit: The handler raised it.
    """
    name = params["name"]
    handler = handlers.get(name)
    if handler is None:
        return error_frame(ToolNotFoundError(name=name, known=sorted(handlers)))
    _current.set(CurrentCall(name, params.get("tool_use_id")))
    frame = await guarded(name, lambda: _result_frame(handler, params, seconds))
    return _failure_frame(frame) if isinstance(frame, ToolFailure) else frame


async def _result_frame(handler: ToolHandler, params: CallToolParams, seconds: float | None) -> bytes:
    # No time limit by default: the tool sets it.
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            value = await handler(cast("dict[str, object]", params["arguments"]))
    except TimeoutError as error:
        if limit.expired():
            raise TimeoutError(f"the tool {params['name']!r} did not answer within {seconds:g} seconds") from error
        raise
    return encode_frame({"result": validate_result(value)})


def error_frame(error: BaseException) -> bytes:
    """Return the response that reports an exception, as a frame: class and message, without the traceback."""
    return _failure_frame(ToolFailure.of(error))


def _failure_frame(failure: ToolFailure) -> bytes:
    try:
        return encode_frame(error_response(*failure))
    except LocalProtocolError:  # text that UTF-8 cannot encode
        encodable = failure.message.encode(errors="backslashreplace").decode()
        return encode_frame(error_response(failure.type, encodable))
