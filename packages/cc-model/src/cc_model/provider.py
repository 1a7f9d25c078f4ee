"""The processes behind a model: `ClaudeCodeProvider`."""

from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Never, Self

import httpx2
from anthropic import AsyncAnthropic
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.providers.anthropic import AnthropicProvider

from cc_messages import ClaudeCodeTransport, LimitCallback
from cc_session import PoolLimits, Timeouts
from cc_session.internals import refuse_keywords
from cc_types import RateLimits

from .arguments import check_arguments, check_env
from .errors import limit_wait
from .profile import claude_code_profile
from .request_log import RequestLog

# The CLI reads this format, whichever format the application uses elsewhere.
_TRACE_CONTEXT = CompositePropagator([TraceContextTextMapPropagator(), W3CBaggagePropagator()])


class ClaudeCodeProvider(AnthropicProvider):
    """Anthropic client whose requests are answered by Claude Code processes on this machine.

    Models, agents, threads and event loops may share a provider. Processes start with the first request, or with
    `async with` if `prewarm` is set. They stay warm between runs; they end after a long idle time, after the last
    `async with` on the provider (or on a model or an agent that uses it), when the provider is garbage-collected, and
    with the interpreter.

    Args:
        pool: Maximum number of Claude Code processes, and so of simultaneous requests; more wait. Or all limits, such
            as `PoolLimits(size=8, prewarm=1)`: then an idle process is kept ready, from `async with`, `start()` or the
            first request on.
        env: Environment variables for the processes, in addition to `os.environ`. The login is the
            first of these in either: a cloud provider, a subscription token in `ANTHROPIC_AUTH_TOKEN`,
            `ANTHROPIC_API_KEY`, a gateway token in `ANTHROPIC_AUTH_TOKEN`, that of the `claude` command.
        cwd: Working directory for Claude Code tools; an empty private folder if None.
        cli_path: Claude Code CLI to run; the CLI in claude-agent-sdk if None.
        timeouts: Limits for the wait for a process (`queue`), a request (`turn`), silence (`silence`), and more.
        cache_breakpoints: True if a request whose settings ask for no caching gets cache breakpoints where Claude Code
            has them: after the system prompt, or else after the tools, and after the user's last message.
        max_retries: Most retries by the client after an error that may be temporary.
        max_retry_wait: Maximum seconds that the client waits before a retry because the API asks for it
            (`retry-after`). Such a wait is logged; a longer wait is an error at once. None for no limit.
        on_limit: Called with a `cc_types.LimitWindow` and the `cc_types.RateLimits` around it when a window passes a
            value in `limit_thresholds`: in the event loop of the request that showed it, once for each threshold, and
            again after the window reset. It must return at once; exceptions are logged.
        limit_thresholds: Used shares of a window, above 0 and at most 1. A window that refuses requests has passed all.
        log: File that gets a line for each model request, which `cc-convert report` reads; or a `RequestLog` with its
            options.

    Raises:
        TypeError: An argument has another type, such as `timeouts=30` or a number in `env`.
        ValueError: A limit or threshold is not in range, `prewarm` is greater than `pool`, or the log folder does not
            exist.
        cc_types.CLINotFoundError: `cli_path` does not exist.
        cc_types.CLIConnectionError: `cli_path` cannot be executed, or `cwd` is not a folder.
    """

    def __init__(
        self,
        *,
        pool: PoolLimits | int = 8,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        cli_path: str | Path | None = None,
        timeouts: Timeouts | None = None,
        cache_breakpoints: bool = False,
        max_retries: int = 2,
        max_retry_wait: float | None = 300.0,
        on_limit: LimitCallback | None = None,
        limit_thresholds: Sequence[float] = (0.8, 0.95),
        log: RequestLog | str | Path | None = None,
        **keywords: Never,
    ) -> None:
        refuse_keywords("ClaudeCodeProvider()", keywords, "pool")
        check_env(env)
        check_arguments(
            pool=pool, cwd=cwd, cli_path=cli_path, timeouts=timeouts, on_limit=on_limit,
            limit_thresholds=limit_thresholds,
        )  # fmt: skip
        transport = ClaudeCodeTransport(
            pool=pool,
            env=env,
            cwd=cwd,
            cli_path=cli_path,
            timeouts=timeouts,
            cache_breakpoints=cache_breakpoints,
            on_limit=on_limit,
            limit_thresholds=limit_thresholds,
        )
        self._connect(transport, max_retries, max_retry_wait, log)

    @classmethod
    def over(
        cls,
        transport: ClaudeCodeTransport,
        *,
        max_retries: int = 2,
        max_retry_wait: float | None = 300.0,
        log: RequestLog | str | Path | None = None,
    ) -> Self:
        """Return a provider for a transport's processes, which may start before pydantic-ai is imported.

        Args:
            transport: Transport; it ends the processes when the provider would.
            max_retries: Most retries by the client after an error that may be temporary.
            max_retry_wait: Maximum seconds that the client waits before a retry because the API asks for it.
            log: File that gets a line for each model request; or a `RequestLog` with its options.
        """
        provider = cls.__new__(cls)
        provider._connect(transport, max_retries, max_retry_wait, log)
        return provider

    def _connect(
        self,
        transport: ClaudeCodeTransport,
        max_retries: int,
        max_retry_wait: float | None,
        log: RequestLog | str | Path | None,
    ) -> None:
        check_arguments(max_retries=max_retries, max_retry_wait=max_retry_wait, log=log)
        hooks = {"request": [_prepare], "response": [partial(limit_wait, max_retries, max_retry_wait)]}
        self._transport = transport
        self._log = log if log is None or isinstance(log, RequestLog) else RequestLog(log)
        self._users = 0
        client = AsyncAnthropic(
            # The CLI has the login; the client requires a key, which is sent nowhere.
            api_key="claude-code",
            # pydantic-ai looks up prices by this address. The CLI environment decides the real address.
            base_url="https://api.anthropic.com",
            http_client=httpx2.AsyncClient(transport=self._transport, event_hooks=hooks),
            max_retries=max_retries,
            # A request has pydantic-ai's span; the client's own would be a second.
            open_telemetry=False,
        )
        AnthropicProvider.__init__(self, anthropic_client=client)

    @property
    def name(self) -> str:
        """Name in model ids and on responses. Thinking signatures are nevertheless valid for `anthropic`, too."""
        return "claude-code"

    def shares_server_state_with(self, provider_url: str) -> bool:
        """Return true for the address where the processes ask, and for the API's own, which all answers here name."""
        addresses = filter(None, (self.base_url.rstrip("/"), self._transport.api_origin))
        return any(f"{provider_url}/".startswith(f"{address}/") for address in addresses)

    @property
    def transport(self) -> ClaudeCodeTransport:
        """Transport; `stats()` has figures about the processes."""
        return self._transport

    @property
    def cache_breakpoints(self) -> bool:
        """True if requests whose settings ask for no caching get cache breakpoints."""
        return self._transport.cache_breakpoints

    @property
    def log(self) -> RequestLog | None:
        """The log with a line for each request; None without one."""
        return self._log

    @property
    def limits(self) -> RateLimits | None:
        """Limits from the last response that had them, with their `age`; None before that. Makes no request."""
        return self._transport.limits

    @staticmethod
    def model_profile(model_name: str) -> ModelProfile:
        """Return a model profile, by id or alias."""
        return claude_code_profile(model_name)

    def start(self) -> None:
        """Start the `prewarm` processes now, without waiting.

        Raises:
            ValueError: `prewarm` is 0.
        """
        _patch_sdk()
        self._transport.start()

    async def warm(self, count: int = 1) -> None:
        """Start processes, and return when `count` are ready: the first run then waits for no start.

        Raises:
            ValueError: The pool is smaller than `count`.
            cc_types.ClaudeCodeError: A process could not be started.
        """
        _patch_sdk()
        await self._transport.warm(count)

    async def aclose(self) -> None:
        """End the processes; a later request starts new ones."""
        await self._transport.aclose()

    async def __aenter__(self) -> Self:
        self._users += 1
        _patch_sdk()
        await self._transport.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._users -= 1
        if self._users == 0:
            await self.aclose()

    def __repr__(self) -> str:
        return f"ClaudeCodeProvider({self._transport!r})"


def check_provider(provider: object) -> None:
    """Check that a provider is a `ClaudeCodeProvider`, or None."""
    if provider is not None and not isinstance(provider, ClaudeCodeProvider):
        raise TypeError(
            f"provider must be a ClaudeCodeProvider, not {provider!r}: leave it out for the shared one, or use the "
            "model class of the other provider"
        )


def _patch_sdk() -> None:
    """Let the SDK warn about message types that it does not know. Importing cc-compat patches the SDK parser."""
    import_module("cc_compat")


async def _prepare(request: httpx2.Request) -> None:
    """Add the current trace context and its baggage to the request."""
    _patch_sdk()
    if "traceparent" not in request.headers:
        _TRACE_CONTEXT.inject(request.headers)


@cache
def default_provider() -> ClaudeCodeProvider:
    """Return the provider for all models without their own, so that they share processes."""
    return ClaudeCodeProvider()
