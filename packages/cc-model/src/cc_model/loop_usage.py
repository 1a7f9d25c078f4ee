"""The usage of a request in the CLI loop, counted and limited by API call as in pydantic-ai's own loop.

pydantic-ai counts a response as one request, with the response usage. So each API call with tool calls is counted here
while the request goes on; at its end these counts are taken back, and what pydantic-ai does not count is recorded.
"""

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

from .run_context import mark_context_input_tokens, record_request, record_usage

_COUNTS = ("input_tokens", "output_tokens", "cache_write_tokens", "cache_read_tokens")


class LoopUsage:
    """Counts a request's API calls in the run's usage, and looks at the run's limits before the tools of each run."""

    def __init__(self, run_context: RunContext[Any], address: str) -> None:
        self._run_context, self._address = run_context, address
        self._counted: list[RequestUsage] = []
        self._begun: RequestUsage | None = None
        """Usage so far of the API call that is not counted yet; None before it begins."""
        self._last_input: int | None = None
        self._message_id: JsonValue = None
        self._first = 0
        """How many calls were counted before the message began: the client may have repeated the request."""
        self.request: RequestContext | None = None

    def take_step(self, loop_step: LoopStep) -> None:
        """Count an API call before its tool calls run.

        Raises:
            UsageLimitExceeded: It exceeds a limit.
            LoopEndedError: Another one would exceed a limit.
        """
        usage, limits = self._run_context.usage, self._run_context.usage_limits
        step = self._usage(loop_step.message)
        usage.requests += 1
        usage.incr(step)
        self._counted.append(step)
        self._begun = None
        if limits is None:
            return
        limits.check_tokens(usage)
        limits.check_cost(usage, warn_if_cost_unavailable=False)
        limits.check_per_request_input_tokens(step.input_tokens)
        if loop_step.calls:
            checked = copy(usage)
            checked.tool_calls += loop_step.calls
            limits.check_before_tool_call(checked)
        if not loop_step.is_last:
            try:
                limits.check_before_request(usage)
            except UsageLimitExceeded as error:
                raise LoopEndedError(message=str(error), reason=error, after_calls=True) from error

    def take_counts(self, message: Mapping[str, JsonValue]) -> None:
        """Take the API counts of all calls so far, in any thread."""
        if self._message_id != message.get("id"):
            self._message_id, self._first = message.get("id"), len(self._counted)
        usage = message.get("usage")
        if isinstance(usage, dict) and isinstance(steps := usage.get("iterations"), list) and steps:
            self._last_input = self._usage({**message, "usage": steps[-1]}).input_tokens
        begun = self._usage(message)
        for counted in self._counted[self._first :]:
            _subtract(begun, counted)
        self._begun = self._priced(begun, str(message.get("model", ""))) if begun.input_tokens else None

    def mark(self, response: ModelResponse | StreamedResponse) -> None:
        """Note in the response how long the context of the last API call was: its usage is the sum of all calls."""
        if self._last_input is not None:
            mark_context_input_tokens(response, self._last_input)

    def error(self) -> BaseException | None:
        """Return the error for the caller if a limit or a tool has ended the request, which has failed."""
        ended_by = None if self.request is None else self.request.ended_by
        return None if ended_by is None else ended_by.reason or UsageLimitExceeded(ended_by.message)

    def end(self, response: ModelResponse | None, *, is_request: bool) -> None:
        """Leave to pydantic-ai what it will count: the usage of `response`, and a request if `is_request`."""
        if not self._counted:
            return
        usage = self._run_context.usage
        remainder, requests = RequestUsage(), len(self._counted) - is_request
        for counted in self._counted:
            _subtract(usage, counted)
            remainder.incr(counted)
        usage.requests -= len(self._counted)
        if response is not None:
            if self._begun is not None:
                remainder.incr(self._begun)
                requests += 1
            _subtract(remainder, self._priced(response.usage, response.model_name or ""))
        record_usage(usage, remainder)
        for _ in range(requests):
            record_request(usage)
        self._counted.clear()

    def _usage(self, message: Mapping[str, JsonValue]) -> RequestUsage:
        model = str(message.get("model", ""))
        data = {"model": model, "usage": message.get("usage")}
        usage = RequestUsage.extract(
            data, provider="anthropic", provider_url=self._address, provider_fallback="anthropic"
        )
        return self._priced(usage, model)

    def _priced(self, usage: RequestUsage, model: str) -> RequestUsage:
        """Return the counts that make up a price, with the price."""
        priced = RequestUsage(**{name: getattr(usage, name) for name in _COUNTS})
        with suppress(LookupError):
            response = ModelResponse(parts=[], usage=usage, model_name=model, provider_name="anthropic")
            priced.cost = response.cost().total_price
        return priced


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
