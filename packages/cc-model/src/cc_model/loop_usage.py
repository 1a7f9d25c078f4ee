"""The usage of a request in the CLI loop, counted and limited by API call as in pydantic-ai's own loop.

pydantic-ai counts a response as one request, with the response usage. So each API call with tool calls is counted here
before the tools run; at the end the response, which pydantic-ai counts next, is taken off.
"""

from collections.abc import Mapping
from contextlib import suppress
from copy import copy
from dataclasses import replace
from decimal import Decimal
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import StreamedResponse
from pydantic_ai.usage import RequestUsage, RunUsage

from cc_messages import LoopEndedError, LoopStep, RequestContext
from cc_types import JsonValue

from .run_context import mark_context_input_tokens, record_usage


class LoopUsage:
    """Counts a request's API calls in the run's usage, and looks at the run's limits before the tools of each run."""

    def __init__(self, run_context: RunContext[Any], address: str) -> None:
        self._run_context, self._address = run_context, address
        self._counted = RunUsage()
        self._counted_before = RunUsage()
        """Usage counted before the present message: the client may have repeated the request."""
        self._message_id: JsonValue = None
        self._reported = RequestUsage()
        """Usage of the present message so far, as taken in another thread."""
        self._last_input: int | None = None
        self._has_ended = False
        self.request: RequestContext | None = None

    def take_step(self, loop_step: LoopStep) -> None:
        """Count an API call before its tool calls run, unless the caller has left the response, which counts instead.

        Raises:
            UsageLimitExceeded: It exceeds a limit.
            LoopEndedError: Another one would exceed a limit.
        """
        usage, limits = self._run_context.usage, self._run_context.usage_limits
        step = self._usage(loop_step.message)
        counts = RunUsage(requests=1) + step
        if self._has_ended:
            usage = usage + counts
        else:
            record_usage(usage, counts)
            self._counted += counts
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
            self._message_id, self._counted_before = message.get("id"), self._counted
        usage = message.get("usage")
        if isinstance(usage, dict) and isinstance(steps := usage.get("iterations"), list) and steps:
            self._last_input = self._usage({**message, "usage": steps[-1]}).input_tokens
        self._reported = self._usage(message)

    def mark(self, response: ModelResponse | StreamedResponse) -> None:
        """Note in the response how long the context of the last API call was: its usage is the sum of all calls."""
        if self._last_input is not None:
            mark_context_input_tokens(response, self._last_input)

    def error(self) -> BaseException | None:
        """Return the error for the caller if a limit or a tool has ended the request, which has failed."""
        ended_by = None if self.request is None else self.request.ended_by
        return None if ended_by is None else ended_by.reason or UsageLimitExceeded(ended_by.message)

    def end(self, response: ModelResponse, *, is_broken: bool) -> None:
        """Count the last API call, and take off what pydantic-ai counts next: the usage that was read, and a request.

        A response that is broken off is a request only if it has parts.
        """
        self._has_ended = True
        if not self._counted.requests:
            return
        begun = RunUsage() + self._reported + _negative(self._counted) + self._counted_before
        # The last report may be older than the last step. An API call reports its input first, and all of it.
        begun = replace(begun, requests=1) if begun.input_tokens > 0 else RunUsage()
        taken = RunUsage(requests=int(not is_broken or bool(response.parts)))
        taken.incr(self._priced(replace(response.usage, details={}), response.model_name or ""))
        record_usage(self._run_context.usage, begun + _negative(taken))

    def _usage(self, message: Mapping[str, JsonValue]) -> RequestUsage:
        model = str(message.get("model", ""))
        data = {"model": model, "usage": message.get("usage")}
        usage = RequestUsage.extract(
            data, provider="anthropic", provider_url=self._address, provider_fallback="anthropic"
        )
        return self._priced(usage, model)

    def _priced(self, usage: RequestUsage, model: str) -> RequestUsage:
        with suppress(LookupError):
            response = ModelResponse(parts=[], usage=usage, model_name=model, provider_name="anthropic")
            usage.cost = response.cost().total_price
        return usage


def _negative(usage: RunUsage) -> RunUsage:
    return RunUsage(cost=None if usage.cost is None else Decimal()) - usage


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
