"""The usage of one request: from the API's counts of its message, which grow, to amounts that can be added."""

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cc_types import JsonValue

from ..api.cost import cost_of, usage_of

__all__ = ["Usage", "UsageMeter"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Usage:
    """Counts of the API, and their price."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    dollars: float = 0.0
    """US dollars by the list prices; infinite if the model has none."""

    @property
    def tokens(self) -> int:
        """The tokens of all kinds."""
        return self.input + self.output + self.cache_read + self.cache_write


class UsageMeter:
    """Reports the usage of a request, piece by piece.

    Args:
        report: Called with each amount that is added, and with the number of requests that it adds: 1 or 0.
    """

    def __init__(self, report: Callable[[Usage, int], None]) -> None:
        self._report = report
        self._reported: Usage | None = None

    def __call__(self, message: Mapping[str, JsonValue]) -> None:
        """Report the usage that a message has beyond that of the last call."""
        usage = usage_of(message)
        if usage is None:
            return
        cost = cost_of(usage)
        if cost is None and self._reported is None:
            logger.warning("The model %r has no list price, so its dollars cannot be counted", usage.model[:100])
        now = Usage(
            usage.input,
            usage.output,
            usage.cache_read,
            usage.cache_write_5m + usage.cache_write_1h,
            math.inf if cost is None else cost,
        )
        before = self._reported or Usage()
        added = Usage(
            now.input - before.input,
            now.output - before.output,
            now.cache_read - before.cache_read,
            now.cache_write - before.cache_write,
            0.0 if math.isinf(before.dollars) else now.dollars - before.dollars,
        )
        requests = 1 if self._reported is None else 0
        self._reported = now
        self._report(added, requests)
