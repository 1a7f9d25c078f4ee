"""Tools in the CLI's own loop: request options outside the body, and their way to the transport.

The Messages API cannot carry a function. So a caller that wants the CLI to run the loop sets it around the request, and
the transport finds it in the request context: `with request_context(tools=…): await client.messages.create(…)`. The
body is unchanged: its `tools` describe the tools to the model, and `CLITools` selects the tools that the CLI calls by
itself. A call of any other tool ends the answer, as in any Messages API response.
"""

import asyncio
import contextvars
import json
import logging
import re
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeVar, cast

from claude_agent_sdk import Message

from cc_ipc import ToolSchema
from cc_session.internals import TOOL_META
from cc_types import JsonValue, RateLimits

from .claude_code_tools import ClaudeCodeTools

__all__ = [
    "CLICall",
    "CLITools",
    "RequestContext",
    "RequestReport",
    "ToolServerKey",
    "current_context",
    "mcp_name",
    "request_context",
]

T = TypeVar("T")

logger = logging.getLogger(__name__)

# It is a part of the tools' names, `mcp__NAME__TOOL`, and the CLI replaces all other characters.
_SERVER_NAME = re.compile(r"(?!.*__)[A-Za-z0-9][A-Za-z0-9_-]*(?<!_)")

CLAUDE_CODE_SERVER = "claude-code"
"""The server name for the CLI's own tools in answers."""


@dataclass(frozen=True, slots=True)
class CLICall:
    """A call of a tool that the CLI makes by itself."""

    id: str | None
    """The model's id of the call; None if the CLI did not send it."""
    name: str
    """The tool's name, as in the request's body."""
    arguments: dict[str, JsonValue]
    """The model's arguments, unchecked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CLITools:
    """Tools that the CLI calls in its own loop, without asking the caller.

    Raises:
        ValueError: The server's name is invalid.
    """

    names: frozenset[str]
    """Their names in the request's body."""
    call: Callable[[CLICall], Awaitable[Mapping[str, object]]]
    """Runs a call, in the event loop and the context of `request_context()`, and returns a tool result in MCP's form:
    `{"content": [{"type": "text", "text": …}], "isError": …}`. Its exception becomes the tool's error for the model."""
    server_name: str = "tools"
    """The name of their MCP server in the CLI."""
    transport: Literal["stdio", "sdk"] = "sdk"
    """The route from the CLI to the tools: a bridge process, or its connection to this process."""
    sequential: frozenset[str] = frozenset()
    """Tools of which no two calls may run at the same time."""

    def __post_init__(self) -> None:
        if _SERVER_NAME.fullmatch(self.server_name) is None or self.server_name == CLAUDE_CODE_SERVER:
            raise ValueError(
                f"{self.server_name!r} cannot be the name of an MCP server: it needs letters, digits, '-' and single "
                f"'_', begins with a letter or digit, and is not {CLAUDE_CODE_SERVER!r}"
            )


def mcp_name(server: str, tool: str) -> str:
    """The CLI's name for a tool of an MCP server."""
    return f"mcp__{server}__{tool}"


@dataclass(frozen=True, slots=True)
class ToolServerKey:
    """Facts about a server that the CLI gets at its start."""

    name: str
    transport: Literal["stdio", "sdk"]
    tools: str
    """The tools as JSON: a list of objects with `name`, `description`, `input_schema` and `sequential`."""
    is_plain: bool = False
    """True if the model gets the tools under their own names, not as `mcp__SERVER__TOOL`."""

    def cli_name(self, tool: str) -> str:
        """Return the tool's name for the model."""
        return tool if self.is_plain else mcp_name(self.name, tool)

    def schemas(self) -> tuple[ToolSchema, ...]:
        """Return the tools in the form of a server's list."""
        return _schemas(self.tools)

    def names(self) -> frozenset[str]:
        """The names of the tools."""
        return frozenset(schema["name"] for schema in self.schemas())


# Every request of an agent has the same tools, and needs them several times.
@lru_cache(maxsize=64)
def _schemas(tools: str) -> tuple[ToolSchema, ...]:
    return tuple(_schema(tool) for tool in cast("list[dict[str, JsonValue]]", json.loads(tools)))


def _schema(tool: Mapping[str, JsonValue]) -> ToolSchema:
    # The CLI runs calls of read-only tools in parallel, and others one after another.
    annotations: dict[str, JsonValue] = {"readOnlyHint": not tool["sequential"]}
    schema = {**tool, "annotations": annotations, "_meta": dict(TOOL_META)}
    del schema["sequential"]
    return cast("ToolSchema", schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestReport:
    """Facts about the handling of a request; after retries by the client, about the last attempt."""

    process_started: bool
    """True if it waited for a process to start and got it; otherwise the process was warm, or had served others."""
    wait_seconds: float
    """The wait for a process, in seconds, a start included."""
    queue_length: int
    """The number of requests that waited for a process before it."""
    rate_limits: RateLimits | None = None
    """The limits, as far as the API's response has them. In the CLI's own loop they can come after the answer."""


class RequestContext:
    """Request context: the options of a request, and the event loop and context in which the caller's code runs."""

    def __init__(
        self,
        tools: CLITools | None,
        claude_code_tools: ClaudeCodeTools | None,
        on_message: Callable[[Message], object] | None,
        on_usage: Callable[[Mapping[str, JsonValue]], object] | None = None,
    ) -> None:
        self.tools = tools
        self.claude_code_tools = claude_code_tools
        self.report: RequestReport | None = None
        """Report about the last request; None before its process was ready."""
        self._on_message = on_message
        self._on_usage = on_usage
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()

    @property
    def has_listener(self) -> bool:
        """True if the caller listens to the CLI's messages."""
        return self._on_message is not None

    def deliver(self, message: Message) -> None:
        """Pass a message to the caller, without waiting."""
        if self._on_message is None:
            return
        try:
            self._loop.call_soon_threadsafe(self._on_message, message, context=self._context.copy())
        except RuntimeError:
            logger.debug("A message of the CLI came when its listener's event loop had ended")

    def tell_usage(self, message: Mapping[str, JsonValue]) -> None:
        """Pass the API's counts to the caller, in this thread, so that they precede the event that has them."""
        if self._on_usage is not None and message:
            try:
                self._on_usage(message)
            except Exception:
                logger.exception("The callback for usage failed")

    async def call(self, call: CLICall) -> Mapping[str, object]:
        """Run a tool in the caller's loop and context. Cancelling this cancels the tool.

        A call that the CLI may not make waits until then: its answer comes with a later request.
        """
        if self.tools is None or call.name not in self.tools.names:
            return await asyncio.get_running_loop().create_future()
        return await self.there(_awaited(self.tools.call, call))

    async def there(self, work: Coroutine[object, object, T]) -> T:
        """Await something in the caller's event loop and context.

        Raises:
            RuntimeError: That loop has ended.
        """
        if self._loop.is_closed():
            work.close()
            raise RuntimeError("the event loop in which the request was made has ended")
        future = self._context.copy().run(asyncio.run_coroutine_threadsafe, work, self._loop)
        return await asyncio.wrap_future(future)


_current: ContextVar[RequestContext | None] = ContextVar("cc_messages_request_context", default=None)


@contextmanager
def request_context(
    *,
    tools: CLITools | None = None,
    claude_code_tools: ClaudeCodeTools | None = None,
    on_message: Callable[[Message], object] | None = None,
    on_usage: Callable[[Mapping[str, JsonValue]], object] | None = None,
) -> Generator[RequestContext]:
    """Set the options of the requests made within, in this task and those started from it.

    Yields the `RequestContext`, whose `report` is set as soon as the response has begun.

    Args:
        tools: Tools for the CLI's own loop.
        claude_code_tools: Tools of Claude Code itself, allowed for these requests.
        on_message: Called in the current event loop with every message of the CLI that belongs to such a request, in
            order, up to and with the turn's `ResultMessage`. The last ones may come after the response.
        on_usage: Called with the API's message without content, whenever the API has counted more: before the caller
            gets the event that says so, and after an answer that broke off, whose `output_tokens` are estimated from
            its length. It is called in a thread of this package, so it must return at once.
    """
    context = RequestContext(tools, claude_code_tools, on_message, on_usage)
    token = _current.set(context)
    try:
        yield context
    finally:
        _current.reset(token)


def current_context() -> RequestContext | None:
    """Return the options of the current task's requests."""
    return _current.get()


async def _awaited(function: Callable[[CLICall], Awaitable[T]], call: CLICall) -> T:
    try:
        return await function(call)
    except SystemExit as error:
        # A task that raises it ends its event loop, which a tool built on a command line parser does not intend.
        raise RuntimeError(f"SystemExit: {error}") from error
