"""Request options outside the body, and their way to the transport.

The Messages API cannot carry a function. So a caller that wants the CLI to run the loop sets it around the request, and
the transport finds it in the request context: `with request_context(tools=…): await client.messages.create(…)`. The
body is unchanged: its `tools` describe the tools to the model, and `CLITools` selects the tools that the CLI calls by
itself. Any other tool call ends the answer, as in any Messages API response.
"""

import asyncio
import contextvars
import logging
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from claude_agent_sdk import Message

from cc_types import JsonValue, RateLimits

from .tools import ClaudeCodeTools, CLICall, CLITools

__all__ = ["RequestContext", "RequestReport", "current_context", "request_context"]

T = TypeVar("T")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestReport:
    """How a request was handled; after retries by the client, the last attempt."""

    process_started: bool
    """True if it waited for a process to start and got it; otherwise the process was warm, or had served others."""
    wait_seconds: float
    """The wait for a process, in seconds, a start included."""
    queue_length: int
    """Requests that waited for a process before it."""
    rate_limits: RateLimits | None = None
    """Limits in the API's response, if any. In the CLI's own loop they can come after the answer."""
    login_expires_at: datetime | None = None
    """Time when a login with `/login` ends, from an earlier request: Claude Code reports it after each answer."""


class RequestContext:
    """Request options, and the event loop and context in which the caller's code runs."""

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
        """The last request's report; None before its process was ready."""
        self.model = ""
        """The model that the last request names; empty before its body was parsed."""
        self._on_message, self._on_usage = on_message, on_usage
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
            logger.debug("A CLI message came after its listener's event loop had ended")

    def tell_usage(self, message: Mapping[str, JsonValue]) -> None:
        """Pass the API's counts to the caller, in this thread, so that they precede the event that has them."""
        if self._on_usage is not None and message:
            try:
                self._on_usage(message)
            except Exception:
                logger.exception("The callback for usage failed")

    async def call(self, call: CLICall) -> Mapping[str, object]:
        """Run a tool in the caller's loop and context. Cancelling this cancels the tool.

        A call to any other tool never returns: it ends the turn, and its result comes with the next request.
        """
        if self.tools is None or call.name not in self.tools.names:
            return await asyncio.get_running_loop().create_future()
        run = self.tools.call

        async def result() -> Mapping[str, object]:
            try:
                return await run(call)
            except SystemExit as error:
                # A task that raises it ends its event loop, which a tool with a command line parser does not intend.
                raise RuntimeError(f"SystemExit: {error}") from error

        return await self.there(result())

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
    """Set the options for all requests made within, in this task and its subtasks.

    Yields the `RequestContext`, whose `report` is set as soon as the response has begun.

    Args:
        tools: The caller's tools for the CLI's own loop.
        claude_code_tools: Claude Code's own tools, allowed for these requests.
        on_message: Called in the current event loop with every CLI message for such a request, in order, up to and
            including the turn's `ResultMessage`. The last ones may come after the response.
        on_usage: Called with the API's message without content, whenever the API has counted more: before the caller
            gets the event that says so, and after an answer that broke off, whose `output_tokens` are estimated from
            its length. It is called in another thread, so it must return at once.
    """
    context = RequestContext(tools, claude_code_tools, on_message, on_usage)
    token = _current.set(context)
    try:
        yield context
    finally:
        _current.reset(token)


def current_context() -> RequestContext | None:
    """Return the request context set in the current task."""
    return _current.get()
