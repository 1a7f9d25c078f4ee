"""A request's cost, from the API's usage and the list prices.

The CLI computes with the prices for its process's model, which can differ from the request's model.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from claude_agent_sdk import ResultMessage

from cc_convert.log_files.extract import request_row
from cc_convert.prices import Prices
from cc_convert.rows import Row
from cc_types import ModelUsage

__all__ = ["cost_of", "has_price", "usage_row", "with_cost"]


def usage_row(message: Mapping[str, Any]) -> Row | None:
    """Return the counts in a message as the API sent it; None if there are none."""
    return request_row({"message": message}, "", "")


def cost_of(row: Row) -> float | None:
    """Return the cost in US dollars by the list prices; None if the model has no price."""
    return _prices().cost(row)


def has_price(model: str) -> bool:
    """Return true if a model is on the price list."""
    return _prices().knows(model)


def with_cost(result: ResultMessage, message: Mapping[str, Any]) -> ResultMessage:
    """Return a turn's result with the cost and the usage in the API's message.

    Args:
        result: The CLI's result.
        message: The message as the API sent it; empty if it sent none.
    """
    row = usage_row(message)
    if row is None:
        return replace(result, total_cost_usd=0.0, model_usage={})
    usage = ModelUsage(
        input_tokens=row.input,
        output_tokens=row.output,
        cache_read_input_tokens=row.cache_read,
        cache_creation_input_tokens=row.cache_write_5m + row.cache_write_1h,
        cache_creation_ephemeral_5m_input_tokens=row.cache_write_5m,
        cache_creation_ephemeral_1h_input_tokens=row.cache_write_1h,
        thinking_tokens=row.thinking,
        web_search_requests=row.web_searches,
        cost_usd=(cost := cost_of(row)) or 0.0,
    )
    return replace(result, total_cost_usd=cost, model_usage={row.model: usage.model_dump(by_alias=True)})


@cache
def _prices() -> Prices:
    return Prices()
