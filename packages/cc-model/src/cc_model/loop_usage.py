"""The usage of a request in the CLI loop, counted and limited by API call as in pydantic-ai's own loop.

pydantic-ai counts a response as one request, with the response usage. So each API call with tool calls is counted here,
when it is over; before the end of the answer these counts are taken back, since the response has them.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from copy import copy
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import StreamedResponse
from pydantic_ai.usage import RequestUsage, RunUsage

from cc_messages import LoopEndedError, LoopStep, RequestContext
from cc_types import JsonValue

from .run_context import mark_context_input_tokens, record_request

_COUNTS = ("input_tokens", "output_tokens", "cache_write_tokens", "cache_read_tokens")


class LoopUsage:
    """Counts a request's API calls in the run's usage, and looks at the run's limits before the tools of each run."""

    def __init__(self, run_context: RunContext[Any], address: str, *, stream: bool) -> None:
        self._run_context, self._address, self._is_stream = run_context, address, stream
        self._counted: list[RequestUsage] = []
        self._streamed: RequestUsage | None = None
        """Usage with which a stream began: pydantic-ai counts it if the stream breaks off."""
        self._is_last_counted = False
        self._last_input: int | None = None
        self._loop = asyncio.get_running_loop()
        self.request: RequestContext | None = None

    def take_step(self, loop_step: LoopStep) -> None:
        """Count an API call before its tool calls run.

        Raises:
            UsageLimitExceeded: It exceeds a limit.
            LoopEndedError: Another one would exceed a limit.
        """
        usage, limits = self._run_context.usage, self._run_context.usage_limits
        step = self._usage(loop_step.message)
        counted = RequestUsage(**{name: getattr(step, name) for name in _COUNTS}, cost=step.cost)
        if not self._counted and self._streamed is not None:
            _subtract(counted, self._streamed)
        if loop_step.is_last:  # pydantic-ai records the request of the whole response
            usage.requests += 1
        else:
            record_request(usage)
        usage.incr(counted)
        self._counted.append(counted)
        self._is_last_counted = loop_step.is_last
        if limits is None:
            return
        checked = copy(usage)
        if self._streamed is not None:
            checked.incr(self._streamed)
        limits.check_tokens(checked)
        limits.check_cost(checked, warn_if_cost_unavailable=False)
        limits.check_per_request_input_tokens(step.input_tokens)
        if loop_step.calls:
            checked.tool_calls += loop_step.calls
            limits.check_before_tool_call(checked)
        if not loop_step.is_last:
            try:
                limits.check_before_request(checked)
            except UsageLimitExceeded as error:
                raise LoopEndedError(message=str(error), reason=error, after_calls=True) from error

    def take_counts(self, message: Mapping[str, JsonValue]) -> None:
        """Take the API counts, in any thread: at the end of the answer, pydantic-ai counts the whole response."""
        if message.get("stop_reason") is None:
            if self._is_stream and self._streamed is None:
                self._streamed = self._usage(message)
            return
        usage = message.get("usage")
        if isinstance(usage, dict) and isinstance(steps := usage.get("iterations"), list) and steps:
            self._last_input = self._usage({**message, "usage": steps[-1]}).input_tokens
        with suppress(RuntimeError):  # the caller's loop has ended
            self._loop.call_soon_threadsafe(self._take_back)

    def mark(self, response: ModelResponse | StreamedResponse) -> None:
        """Note in the response how long the context of the last API call was: its usage is the sum of all calls."""
        if self._last_input is not None:
            mark_context_input_tokens(response, self._last_input)

    def error(self) -> BaseException | None:
        """Return the error for the caller if a limit or a tool has ended the request, which has failed."""
        if self._is_stream and self._counted:  # pydantic-ai counts a broken stream as a request
            self._run_context.usage.requests -= 1
        ended_by = None if self.request is None else self.request.ended_by
        return None if ended_by is None else ended_by.reason or UsageLimitExceeded(ended_by.message)

    def _take_back(self) -> None:
        for counted in self._counted:
            _subtract(self._run_context.usage, counted)
        self._run_context.usage.requests -= self._is_last_counted
        self._is_last_counted = False
        self._counted.clear()

    def _usage(self, message: Mapping[str, JsonValue]) -> RequestUsage:
        model = str(message.get("model", ""))
        data = {"model": model, "usage": message.get("usage")}
        usage = RequestUsage.extract(
            data, provider="anthropic", provider_url=self._address, provider_fallback="anthropic"
        )
        priced = ModelResponse(parts=[], usage=usage, model_name=model, provider_name="anthropic")
        with suppress(LookupError):
            usage.cost = priced.cost().total_price
        return usage


def _subtract(usage: RequestUsage | RunUsage, part: RequestUsage) -> None:
    for name in _COUNTS:
        setattr(usage, name, getattr(usage, name) - getattr(part, name))
    if part.cost is not None and usage.cost is not None:
        usage.cost -= part.cost


def check_call(run_context: RunContext[Any] | None, running: int) -> None:
    """Raise `LoopEndedError` if one more tool call, beside those that are `running`, exceeds the run's limit."""
    if run_context is None or (limits := run_context.usage_limits) is None:
        return
    projected = copy(run_context.usage)
    projected.tool_calls += running + 1
    try:
        limits.check_before_tool_call(projected)
    except UsageLimitExceeded as error:
        raise LoopEndedError(message=str(error), reason=error) from error
