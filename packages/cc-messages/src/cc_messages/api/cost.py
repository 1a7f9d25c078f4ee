"""A request's cost, from the API's usage and the list prices.

The CLI computes with the prices for its process's model, which can differ from the request's model.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from claude_agent_sdk import ResultMessage

from cc_convert.log_files.usage import MessageUsage, message_usage
from cc_convert.prices import Prices
from cc_types import ModelUsage

__all__ = ["cost_of", "has_price", "usage_of", "with_cost"]


def usage_of(message: Mapping[str, Any]) -> MessageUsage | None:
    """Return the usage in a message as the API sent it; None if there is no usage or no id."""
    return message_usage(message) if message.get("id") else None


def cost_of(usage: MessageUsage) -> float | None:
    """Return the cost in US dollars by the list prices; None if the model has no price."""
    return _prices().cost_of(usage.counts, usage.model, usage.traits, usage.steps)


def has_price(model: str) -> bool:
    """Return true if a model is on the price list."""
    return _prices().knows(model)


def with_cost(result: ResultMessage, message: Mapping[str, Any]) -> ResultMessage:
    """Return a turn's result with the cost and the usage in the API's message.

    Args:
        result: The CLI's result.
        message: The message as the API sent it; empty if it sent none.
    """
    usage = usage_of(message)
    if usage is None:
        return replace(result, total_cost_usd=0.0, model_usage={})
    model_usage = ModelUsage(
        input_tokens=usage.input,
        output_tokens=usage.output,
        cache_read_input_tokens=usage.cache_read,
        cache_creation_input_tokens=usage.cache_write_5m + usage.cache_write_1h,
        cache_creation_ephemeral_5m_input_tokens=usage.cache_write_5m,
        cache_creation_ephemeral_1h_input_tokens=usage.cache_write_1h,
        thinking_tokens=usage.thinking,
        web_search_requests=usage.web_searches,
        cost_usd=(cost := cost_of(usage)) or 0.0,
    )
    return replace(result, total_cost_usd=cost, model_usage={usage.model: model_usage.model_dump(by_alias=True)})


@cache
def _prices() -> Prices:
    return Prices()
