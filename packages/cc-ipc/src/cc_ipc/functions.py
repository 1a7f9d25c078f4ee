"""Python functions as tools: a schema from the signature, and a handler that converts arguments and results."""

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

from pydantic import ConfigDict, TypeAdapter

from cc_ipc_bridge.payload import encode_json

from .errors import InvalidToolResultError
from .messages import ToolHandler, ToolSchema, validate_result

if TYPE_CHECKING:
    from cc_types import JsonValue

Function: TypeAlias = Callable[..., object]
"""A sync or async function, method or other callable whose parameters can be given by name."""

_RESULT_FIELDS = frozenset({"content", "isError", "structuredContent", "_meta"})

_values: TypeAdapter[object] = TypeAdapter(object, config=ConfigDict(ser_json_bytes="base64"))


class FunctionTool(NamedTuple):
    """A function as a tool."""

    schema: ToolSchema
    """The schema that hosts see."""
    handler: ToolHandler
    """The handler that calls the function."""


def function_tool(name: str, function: Function, loop: asyncio.AbstractEventLoop | None = None) -> FunctionTool:
    """Return a function as a tool. The docstring becomes the description.

    A sync function runs in a thread of its own, an async function in `loop`, by default the handler's.

    Raises:
        TypeError: The function has parameters that cannot be given by name.
    """
    adapter, schema = _adapter_and_schema(name, function)

    async def handler(arguments: dict[str, object]) -> dict[str, object]:
        # Validation calls the function; calling an async function only creates a coroutine.
        value = await _in_thread(lambda: adapter.validate_python(arguments))
        if inspect.iscoroutine(value):
            value = await _run_in(value, loop)
        return _to_tool_result(value)

    return FunctionTool({"name": name, "description": inspect.getdoc(function) or "", "input_schema": schema}, handler)


def _adapter_and_schema(name: str, function: Function) -> "tuple[TypeAdapter[object], dict[str, JsonValue]]":
    """Return the adapter that calls a function with validated arguments, and the arguments' JSON Schema."""
    plain = inspect.isroutine(function) or isinstance(function, partial)
    try:
        # pydantic takes functions as they are; it would take the type of any other callable.
        adapter: TypeAdapter[object] = TypeAdapter(cast("type[object]", function if plain else function.__call__))
        schema = adapter.json_schema()
    except (RuntimeError, NameError, ValueError) as error:
        raise TypeError(f"The function {name!r} cannot be a tool: {error}") from error
    if schema.get("type") != "object":
        raise TypeError(f"The function {name!r} cannot be a tool: it has parameters that cannot be given by name")
    return adapter, schema


async def _in_thread(work: Callable[[], object]) -> object:
    """Run in a new thread: a pool has few threads, and a blocked one would delay the shutdown of the event loop."""
    context, future = copy_context(), Future[object]()

    def run() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(context.run(work))
        except StopIteration as error:  # a future cannot carry it
            future.set_exception(RuntimeError(f"StopIteration: {error}"))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(future)


async def _run_in(coroutine: Coroutine[object, object, object], loop: asyncio.AbstractEventLoop | None) -> object:
    if loop is None:
        return await coroutine
    if loop.is_closed():
        coroutine.close()
        raise RuntimeError("the event loop that the function belongs to has ended")
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, loop))


def _to_tool_result(value: object) -> dict[str, object]:
    """Return a value as a tool result: text and MCP tool results as they are, any other value as JSON."""
    if isinstance(value, str):
        return {"content": [{"type": "text", "text": value}]}
    if (result := _mcp_result(value)) is not None:
        return result
    data = _values.dump_python(value, mode="json", fallback=str)
    text: dict[str, object] = {"content": [{"type": "text", "text": encode_json(data).decode()}]}
    return {**text, "structuredContent": data} if isinstance(data, dict) else text


def _mcp_result(value: object) -> dict[str, object] | None:
    if not isinstance(value, Mapping) or not _RESULT_FIELDS.issuperset(cast("Mapping[object, object]", value)):
        return None
    try:
        return cast("dict[str, object]", validate_result(cast("object", value)))
    except InvalidToolResultError:  # a mapping with the keys of a result
        return None
