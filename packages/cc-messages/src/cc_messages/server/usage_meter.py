"""The usage of a request: from the API's counts, which grow with the message, to amounts that can be added."""

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cc_types import JsonValue

from ..api.cost import cost_of, usages_of
from .usage_store import UsageTotal

__all__ = ["Usage", "UsageMeter"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Usage:
    """The API's counts, and their price."""

    requests: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    dollars: float = 0.0
    """US dollars by the list prices; infinite if the model has no price."""

    @property
    def all_input(self) -> int:
        """The input tokens, with those read from and written to the cache."""
        return self.input + self.cache_read + self.cache_write

    @property
    def total(self) -> UsageTotal:
        """The same, with tokens of all kinds in a single number."""
        return UsageTotal(self.requests, self.all_input + self.output, self.dollars)

    def __sub__(self, other: "Usage") -> "Usage":
        return Usage(
            self.requests - other.requests,
            self.input - other.input,
            self.output - other.output,
            self.cache_read - other.cache_read,
            self.cache_write - other.cache_write,
            0.0 if math.isinf(other.dollars) else self.dollars - other.dollars,
        )


class UsageMeter:
    """Reports the usage of a request, piece by piece.

    Args:
        report: Called with each amount that is added.
    """

    def __init__(self, report: Callable[[Usage], None]) -> None:
        self._report = report
        self.reported = Usage()
        """The request's usage so far."""
        self.message: Mapping[str, JsonValue] = {}
        """The API's last message that had counts, without its content."""

    def __call__(self, message: Mapping[str, JsonValue]) -> None:
        """Report how much usage a message adds to that of the last call."""
        usages = usages_of(message)
        if not usages:
            return
        self.message, counts, cost = message, usages[0], cost_of(usages)
        if cost is None and not self.reported.requests:
            logger.warning("The model %r has no list price, so its dollars cannot be counted", counts.model[:100])
        cache_write = counts.cache_write_5m + counts.cache_write_1h
        dollars = math.inf if cost is None else cost
        usage = Usage(1, counts.input, counts.output, counts.cache_read, cache_write, dollars)
        added, self.reported = usage - self.reported, usage
        self._report(added)
