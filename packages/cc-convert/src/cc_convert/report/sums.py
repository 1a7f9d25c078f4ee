"""A line in a report, with its sums."""

from dataclasses import dataclass, field

from .buckets import Bucket

__all__ = ["Line", "spell_cost"]


@dataclass
class Line:
    """The sums over some buckets."""

    key: str
    """Key that all buckets share, such as a day."""
    requests: int = 0
    """Requests with an answer."""
    errors: int = 0
    """Requests that failed."""
    input: int = 0
    """Input tokens that were neither read from the cache nor written to it."""
    output: int = 0
    """Output tokens, thinking included."""
    cache_write_5m: int = 0
    """Tokens written to the cache for five minutes."""
    cache_write_1h: int = 0
    """Tokens written to the cache for an hour."""
    cache_read: int = 0
    """Tokens read from the cache."""
    thinking: int = 0
    """Thinking tokens, already counted in the output."""
    web_searches: int = 0
    """Web searches."""
    cost: float = 0.0
    """US dollars, for all requests with a price."""
    unpriced: int = 0
    """Tokens without a price; they are not in the cost."""
    unlogged_cost: float = 0.0
    """Cost of usage that is in the CLI's totals and in no request, such as compactions."""
    first: float = 0.0
    """Time of the first request, in seconds since 1970; 0 if no time is known."""
    last: float = 0.0
    """Time of the last request."""
    models: dict[str, float] = field(default_factory=dict[str, float])
    """Cost by model."""
    about: dict[str, str] = field(default_factory=dict[str, str])
    """Other facts about the line."""

    @property
    def tokens(self) -> int:
        """Return all tokens."""
        return self.input + self.output + self.cache_write_5m + self.cache_write_1h + self.cache_read

    @property
    def cache_hits(self) -> float | None:
        """Return the share of the input that came from the cache; `None` without input."""
        all_input = self.input + self.cache_write_5m + self.cache_write_1h + self.cache_read
        return self.cache_read / all_input if all_input else None

    def add(self, bucket: Bucket) -> None:
        """Add a bucket."""
        self._add(bucket)
        if bucket.unlogged:
            self.unlogged_cost += bucket.cost
        if bucket.requests or bucket.unlogged:
            self.models[bucket.model] = self.models.get(bucket.model, 0.0) + bucket.cost

    def add_line(self, line: "Line") -> None:
        """Add another line."""
        self._add(line)
        self.unlogged_cost += line.unlogged_cost
        for model, cost in line.models.items():
            self.models[model] = self.models.get(model, 0.0) + cost

    def _add(self, other: "Bucket | Line") -> None:
        for name in _ADDED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if other.first:
            self.first = min(self.first or other.first, other.first)
            self.last = max(self.last, other.last)


_ADDED = (
    "requests", "errors", "input", "output", "cache_write_5m", "cache_write_1h", "cache_read", "thinking",
    "web_searches", "cost", "unpriced",
)  # fmt: skip


def spell_cost(cost: float, unpriced: int = 0) -> str:
    """Format US dollars for people, with `*` if some tokens have no price.

    Amounts between 0 and a cent have two more decimals.
    """
    return (f"${cost:,.4f}" if 0 < cost < 0.01 else f"${cost:,.2f}") + ("*" if unpriced else "")
