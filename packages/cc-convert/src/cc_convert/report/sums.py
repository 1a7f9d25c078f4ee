"""One line of a report, with its sums."""

from .buckets import Bucket

__all__ = ["Line"]


class Line:
    """The sums over some buckets.

    Args:
        key: Common key of the buckets, such as a day.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        """Common key of the buckets, such as a day."""
        self.requests = 0
        """Requests with an answer."""
        self.errors = 0
        """Requests that failed."""
        self.input = 0
        """Input tokens that were neither read from the cache nor written to it."""
        self.output = 0
        """Output tokens, thinking included."""
        self.cache_write_5m = 0
        """Tokens written to the cache for five minutes."""
        self.cache_write_1h = 0
        """Tokens written to the cache for an hour."""
        self.cache_read = 0
        """Tokens read from the cache."""
        self.thinking = 0
        """Tokens of thinking, already counted in the output."""
        self.web_searches = 0
        """Web searches."""
        self.cost = 0.0
        """US dollars, of all requests with a price."""
        self.unpriced = 0
        """Tokens of models without a price; they are not in the cost."""
        self.unlogged_cost = 0.0
        """Part of the cost that is in the CLI's totals and in no request, such as compactions."""
        self.first = 0.0
        """The time of the first request, in seconds since 1970; 0 if no time is known."""
        self.last = 0.0
        """The time of the last request."""
        self.models: dict[str, float] = {}
        """Cost by model."""
        self.about: dict[str, str] = {}
        """Other facts about the line."""

    @property
    def tokens(self) -> int:
        """Return all tokens, of every kind."""
        return self.input + self.output + self.cache_write_5m + self.cache_write_1h + self.cache_read

    @property
    def cache_hits(self) -> float | None:
        """Return the share of the input that came from the cache; `None` without input."""
        given = self.input + self.cache_write_5m + self.cache_write_1h + self.cache_read
        return self.cache_read / given if given else None

    def add(self, bucket: Bucket) -> None:
        """Add a bucket."""
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
        if bucket.requests or bucket.unlogged:
            self.models[bucket.model] = self.models.get(bucket.model, 0.0) + bucket.cost
