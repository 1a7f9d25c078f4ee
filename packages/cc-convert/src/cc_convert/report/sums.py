"""Adding up: one line of a report."""

from dataclasses import dataclass, field

from .buckets import Bucket

__all__ = ["Line"]


@dataclass(slots=True)
class Line:
    """The sums over some buckets."""

    key: str
    """What the buckets have in common, such as a day."""
    requests: int = 0
    """Requests that were answered."""
    errors: int = 0
    """Requests that failed."""
    input: int = 0
    """Input tokens that neither came from the cache nor went into it."""
    output: int = 0
    """Output tokens, thinking included."""
    cache_write_5m: int = 0
    """Tokens written to the cache for five minutes."""
    cache_write_1h: int = 0
    """Tokens written to the cache for an hour."""
    cache_read: int = 0
    """Tokens read from the cache."""
    thinking: int = 0
    """Tokens of thinking, already counted in the output."""
    web_searches: int = 0
    """Web searches."""
    cost: float = 0.0
    """US dollars, of all that has a price."""
    unpriced: int = 0
    """Tokens of models without a price; they are not in the cost."""
    unlogged_cost: float = 0.0
    """What of the cost stands in the CLI's totals and in no request, such as compactions."""
    first: float = 0.0
    """The time of the first request, in seconds since 1970; 0 if no time is known."""
    last: float = 0.0
    """The time of the last request."""
    models: dict[str, float] = field(default_factory=dict[str, float])
    """Cost by model."""
    about: dict[str, str] = field(default_factory=dict[str, str])
    """What else there is to say of the line."""

    @property
    def tokens(self) -> int:
        """All tokens, of every kind."""
        return self.input + self.output + self.cache_write_5m + self.cache_write_1h + self.cache_read

    @property
    def cache_hits(self) -> float | None:
        """What part of the input came from the cache; `None` without input."""
        given = self.input + self.cache_write_5m + self.cache_write_1h + self.cache_read
        return self.cache_read / given if given else None

    def add(self, bucket: Bucket) -> None:
        """Count a bucket in."""
        self.requests += bucket.requests
        self.errors += bucket.errors
        self.input += bucket.input
        self.output += bucket.output
        self.cache_write_5m += bucket.cache_write_5m
        self.cache_write_1h += bucket.cache_write_1h
        self.cache_read += bucket.cache_read
        self.thinking += bucket.thinking
        self.web_searches += bucket.web_searches
        self.cost += bucket.cost
        self.unpriced += bucket.unpriced
        if bucket.unlogged:
            self.unlogged_cost += bucket.cost
        if bucket.first:
            self.first = min(self.first or bucket.first, bucket.first)
            self.last = max(self.last, bucket.last)
        self.models[bucket.model] = self.models.get(bucket.model, 0.0) + bucket.cost
