"""`ClaudeCodeTransport`: an `httpx2` transport that answers the Messages API by driving Claude Code.

Pass it to an `httpx2.AsyncClient` or an `httpx2.Client`, and that to any Anthropic API client. Only the end of a
request path matters, not the base URL.
"""

import asyncio
import logging
import os
from collections import ChainMap
from collections.abc import Mapping, Sequence
from copy import copy
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Never, Self

import httpx2

from cc_session import PoolLimits, PoolStats, QueueTimeoutError, Timeouts
from cc_session.internals import (
    CLOUD_VARIABLES,
    Lease,
    Login,
    PoolCore,
    PoolOwner,
    api_origin,
    check_paths,
    login_advice,
    login_of,
    on_background,
    refuse_keywords,
    run_on_background,
    start_on_background,
    without_login,
)  # fmt: skip
from cc_types import APIError, ClaudeCodeError, JsonValue, RateLimits

from .api.folding import unfolded_messages
from .api.models import catalogue, find, page, resolve
from .api.paths import api_path
from .api.request import check_headers, headers_env, parse_object, run_on_body
from .api.response import MethodNotAllowedError, error_response, overloaded, raw_headers
from .api.token_count import APIAccess
from .context import current_context
from .limit_watch import LimitCallback, LimitWatch
from .loop.plan import loop_launch
from .loop.request import LoopRequest, parse_request
from .process.plan import LaunchBuilder
from .process.request_process import RequestProcess
from .request_handler import Body, ResponseStream, answer

logger = logging.getLogger(__name__)

ERROR_EXTENSION = "claude_code_error"
"""The key of `Response.extensions` for the `ClaudeCodeError` that a response reports."""

_MODELS = "/v1/models"
# Names of a request's parts that are logged.
_MOST_NAMES, _SHOWN_CHARACTERS = 20, 200
_METHODS = {"/v1/messages": "POST", "/v1/messages/count_tokens": "POST", _MODELS: "GET", "/v1/limits": "GET"}


class ClaudeCodeTransport(httpx2.AsyncBaseTransport, httpx2.BaseTransport):
    """Answers the Messages API with pooled Claude Code processes.

    It serves `POST /v1/messages`, `POST /v1/messages/count_tokens`, `GET /v1/models`, `GET /v1/models/{id}`, and
    `GET /v1/limits`, the HTTP form of `limits`. Many threads and asyncio loops may use it at once, with
    asynchronous and synchronous clients. Nothing is started before the first request.

    Args:
        pool: The most processes, and so the most requests answered at the same time; more wait. Or all pool limits;
            `prewarm` holds from `async with`, `start()`, `warm()` or the first request on.
        env: Environment variables for the processes, on top of this one's, such as `ANTHROPIC_API_KEY`.
        cwd: Working folder for Claude Code tools; an empty private folder if None.
        cli_path: The CLI to run; the CLI in claude-agent-sdk's wheel if None.
        timeouts: Limits for a request's wait for a process (`queue`), duration (`turn`), silence (`silence`), and more.
        cache_breakpoints: True if a request that sets no `cache_control` gets breakpoints where Claude Code would place
            them: after the system prompt, or else after the tools, and after the user's last message.
        on_limit: Called with a `LimitWindow` and its `RateLimits` when a plan window passes a value in
            `limit_thresholds`: in the event loop whose request has shown it, once for each threshold, and again after
            the window was reset. It must return at once; exceptions are logged.
        limit_thresholds: Used shares of a window, above 0 and at most 1. A window that refuses has passed all.

    Raises:
        ValueError: A threshold is invalid.
        CLINotFoundError: `cli_path` does not exist.
        CLIConnectionError: `cli_path` cannot be executed, or `cwd` is not a folder.
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
        on_limit: LimitCallback | None = None,
        limit_thresholds: Sequence[float] = (0.8, 0.95),
        **keywords: Never,
    ) -> None:
        refuse_keywords("ClaudeCodeTransport()", keywords, "pool")
        check_paths(cwd, cli_path)
        self._pool_limits = PoolLimits.of(pool)
        self.cache_breakpoints = cache_breakpoints
        """True if requests without `cache_control` get breakpoints."""
        self._env = dict(env or {})
        self._make_launches = partial(LaunchBuilder, cwd=cwd, cli_path=cli_path, timeouts=timeouts or Timeouts())
        self._make_limits = partial(LimitWatch, on_limit, limit_thresholds)
        self._launches, self._limits = self._make_launches(self._env), self._make_limits()
        self._models: JsonValue = None
        self._unsent: set[str] = set()
        self._base: ClaudeCodeTransport | None = None
        self._pool = PoolOwner(self, partial(PoolCore, self._launches.whole, self._pool_limits, RequestProcess.start))

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer an HTTP request.

        Raises:
            httpx2.ReadError: The process failed or lost the API; the cause is a `ClaudeCodeError`.
            httpx2.ReadTimeout: Nothing came within the request's read timeout, which does not run while the request
                waits for a process.
            httpx2.TransportError: The API could not be reached to count tokens.
        """
        try:
            check_headers(request.headers.multi_items())
            method, path = request.method, api_path(request.url.path)
            match method, _MODELS if path.startswith(f"{_MODELS}/") else path:
                case "POST", "/v1/messages":
                    return await self._answer(request)
                case "POST", "/v1/messages/count_tokens":
                    return await self._count(request)
                case "GET", "/v1/models":
                    return await self._show_models(request)
                case "GET", "/v1/limits":
                    limits = self.limits
                    shown = None if limits is None else limits.model_dump(mode="json")
                    age = None if limits is None else round(limits.age, 3)
                    return httpx2.Response(200, json={"rate_limits": shown, "age_seconds": age})
                case _, name:
                    if allowed := _METHODS.get(name):
                        raise MethodNotAllowedError(method, path, allowed)
                    raise APIError(status=404, message=f"{method} {path} is not served by Claude Code")
        except APIError as error:
            return error_response(error)
        except QueueTimeoutError as error:
            return error_response(overloaded(error))
        except ClaudeCodeError as error:
            raise httpx2.ReadError(str(error)) from error

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer a synchronous client's HTTP request, while this thread waits.

        Raises:
            httpx2.TransportError: As `handle_async_request()`.
        """
        request.read()
        return run_on_background(self.handle_async_request, request)

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        unsent = {*request.url.params} - {"beta"} | {"idempotency-key"} & {*request.headers}
        if unsent - self._unsent and len(self._unsent) < _MOST_NAMES:
            self._unsent |= unsent
            logger.warning(
                "Claude Code cannot send to the API: %s", ascii(", ".join(sorted(unsent))[:_SHOWN_CHARACTERS])
            )
        parse = partial(
            parse_request,
            betas=request.headers.get("anthropic-beta", ""),
            context=current_context.get(),
            headers=headers_env(request.headers.items(), ChainMap(self._env, os.environ)),
            login=login_of(self._env),
            places_breakpoints=self.cache_breakpoints,
        )
        parsed = await run_on_body(parse, await request.aread())
        if parsed.context is not None:
            parsed.context.model = parsed.model
        launches = self._launches
        launch = loop_launch(parsed, launches) if isinstance(parsed, LoopRequest) else launches.whole(parsed)
        response = ResponseStream()
        timeout = request.extensions.get("timeout", {}).get("read")
        loop = asyncio.get_running_loop()
        start_on_background(answer, self._pool.core, launch, parsed, response, self._limits, loop)
        head = await response.head(timeout)
        extensions = {} if head.error is None else {ERROR_EXTENSION: head.error}
        body = Body(response, timeout, self)
        headers = raw_headers(head.headers)
        return httpx2.Response(head.status, headers=headers, stream=body, extensions=extensions, request=request)

    async def _count(self, request: httpx2.Request) -> httpx2.Response:
        api, fields = APIAccess.of(self._env), await run_on_body(parse_object, await request.aread())
        # The API knows only ids that begin so; other names may be Claude Code's aliases.
        if isinstance(model := fields.get("model"), str) and not model.startswith("claude-"):
            fields["model"] = resolve(await self._listed(), model)
        if isinstance(messages := fields.get("messages"), list):
            fields["messages"] = unfolded_messages(messages)
        return await api.count(fields, request)

    async def _show_models(self, request: httpx2.Request) -> httpx2.Response:
        models = catalogue(await self._listed())
        name = api_path(request.url.path).removeprefix(_MODELS).removeprefix("/")
        return httpx2.Response(200, json=find(models, name) if name else page(models, dict(request.url.params)))

    async def _listed(self) -> JsonValue:
        """Return Claude Code models, as any process reports at its start."""
        if self._models is None:
            self._models = await on_background(_models, self._pool.core, self._launches)
        return self._models

    def with_login(self, login: Mapping[str, str]) -> "ClaudeCodeTransport":
        """Return a transport for another login, with the same pool: no process is shared, and the limits hold for both.

        Args:
            login: Environment variables, such as `ANTHROPIC_API_KEY`. The processes get no other keys, tokens and
                profiles from this transport or program, but addresses, regions and all other variables.
        """
        sibling = copy(self)
        sibling._base = self  # whose end would end the processes
        sibling._env = {**self._env, **dict.fromkeys((*CLOUD_VARIABLES, "AWS_PROFILE"), ""), **without_login(login)}
        sibling._launches, sibling._limits = self._make_launches(sibling._env), self._make_limits()
        sibling._models = None
        return sibling

    def end_login(self) -> None:
        """End the processes with this transport's login, which `with_login()` has set; in use, after their requests.

        Requests that come later are answered all the same, each by a process that ends after it.

        Raises:
            ValueError: `with_login()` has not made this transport: `aclose()` ends its processes.
        """
        if self._base is None:
            raise ValueError("only a transport by with_login() can end its login; close this transport with aclose()")
        self._launches.login_has_ended = True

    def start(self) -> None:
        """Start the `prewarm` processes now, without waiting: they start while the program goes on importing.

        A start that fails is logged, and retried with the first request.

        Raises:
            ValueError: `prewarm` is 0.
        """
        if not self._pool_limits.prewarm:
            raise ValueError("no process would be started: prewarm is 0")
        start_on_background(self._pool.core.prewarm)

    async def warm(self, count: int = 1) -> None:
        """Start processes, and return when there are `count`, those in use included.

        Raises:
            ValueError: There is no room for so many.
            ClaudeCodeError: A process could not be started.
        """
        if not 0 <= count <= self._pool_limits.size:
            raise ValueError(f"{count} processes cannot be warm: there is room for {self._pool_limits.size}")
        await on_background(self._pool.core.warm, self._launches.whole(), count)

    async def aclose(self) -> None:
        """End all processes, those in use too. A later request starts new ones."""
        await on_background(self._pool.renew().aclose)

    def close(self) -> None:
        """End all processes, while this thread waits; see `aclose()`."""
        run_on_background(self.aclose)

    async def __aenter__(self) -> Self:
        if self._pool_limits.prewarm:
            self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @property
    def pids(self) -> list[int]:
        """Ids of the running processes."""
        return self._pool.core.pids()

    @property
    def uses_subscription(self) -> bool:
        """True if processes that are started now use a subscription login, which is for the subscriber alone."""
        return login_of(self._env) is Login.SUBSCRIPTION

    def login_advice(self) -> str:
        """Return a sentence that says how to go on after the API has refused the processes' login."""
        return login_advice(ChainMap(self._env, os.environ))

    @property
    def api_origin(self) -> str:
        """Scheme, host and port of the API that the processes ask; empty for a cloud provider's own address."""
        return api_origin(self._env)

    @property
    def limits(self) -> RateLimits | None:
        """Limits in the last response with any, and their `age`; None before that. Makes no request."""
        return self._limits.last

    @property
    def login_expires_at(self) -> datetime | None:
        """Time when a login with `/login` ends, as Claude Code reported it after the last answer; None before that."""
        return self._limits.login_expires_at

    def stats(self) -> PoolStats:
        """Return the current figures: processes, requests, starts, memory. May be called from anywhere at any time."""
        return self._pool.core.stats()

    def __repr__(self) -> str:
        return f"<ClaudeCodeTransport {self.stats().summary}>"


async def _models(core: PoolCore, launches: LaunchBuilder) -> JsonValue:
    lease = Lease(launches.whole())
    try:
        return (await core.acquire(lease)).session.info.get("models", [])
    finally:
        core.give_back(lease)
