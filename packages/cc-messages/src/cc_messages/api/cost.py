"""A request's cost, from the API usage and the list prices.

The CLI computes with the prices for the process model, which can differ from the request model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from claude_agent_sdk import ResultMessage

from cc_convert.internals import (
    MessageUsage,
    Prices,
    canonical_model,
    checked_record,
    checked_usage,
    counts_in,
    message_usage,
    samplings_in,
)
from cc_types import ModelUsage

_prices = cache(Prices)


def usages_of(message: Mapping[str, Any]) -> list[MessageUsage]:
    """Return the usage in a message as the API sent it, without models that declined before any output: they cost none.

    The model that answered comes first. The list is empty if there is no usage. A count that no request can have, such
    as a negative one, is 0, and the other counts stay: a gateway may send anything.
    """
    fields = {name: message.get(name) for name in ("model", "usage")}
    checked = checked_record({"message": fields})[0]["message"]
    usage = message_usage(checked)
    if usage is None:
        return []
    parts = [
        MessageUsage(counts_in(checked_usage(part)[0]), usage.traits, model, ())
        for model, part in samplings_in(checked["usage"].get("iterations") or ())
        if model and canonical_model(model) != canonical_model(usage.model)
    ]
    return [usage, *(part for part in parts if part.amounts.output)]


def cost_of(usages: Sequence[MessageUsage]) -> float | None:
    """Return the cost in US dollars by the list prices; None if a model has no price."""
    costs = [_prices().cost_of(usage.counts, usage.model, usage.traits, usage.steps) for usage in usages]
    return None if None in costs else sum(cost or 0.0 for cost in costs)


def has_price(model: str) -> bool:
    """Return true if a model is on the price list."""
    return _prices().knows(model)


def with_cost(result: ResultMessage, message: Mapping[str, Any]) -> ResultMessage:
    """Return a turn result with the cost and the usage in the API message, which is empty if it sent none."""
    usages = usages_of(message)
    models = {usage.model: _model_usage(usage).model_dump(by_alias=True) for usage in usages}
    if usages and (iterations := message["usage"].get("iterations")):
        result = replace(result, usage={**(result.usage or {}), "iterations": iterations})
    return replace(result, total_cost_usd=cost_of(usages), model_usage=models)


def _model_usage(usage: MessageUsage) -> ModelUsage:
    amounts = usage.amounts
    return ModelUsage(
        input_tokens=amounts.input,
        output_tokens=amounts.output,
        cache_read_input_tokens=amounts.cache_read,
        cache_creation_input_tokens=amounts.unsplit.cache_write_5m,
        cache_creation_ephemeral_5m_input_tokens=amounts.cache_write_5m,
        cache_creation_ephemeral_1h_input_tokens=amounts.cache_write_1h,
        thinking_tokens=amounts.thinking,
        web_search_requests=amounts.web_searches,
        cost_usd=cost_of([usage]) or 0.0,
    )
