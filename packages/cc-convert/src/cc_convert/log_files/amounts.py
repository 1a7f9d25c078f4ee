"""Amounts: tokens by kind, web searches and US dollars. This module knows neither files nor formats."""

from typing import NamedTuple, TypeAlias

Counts: TypeAlias = tuple[int, int, int, int, int, int, int]
"""The counts in `Amounts`, from `input` to `web_searches`, where a plain tuple is faster."""


class Amounts(NamedTuple):
    """Tokens by kind, web searches and US dollars, of a request or of many; `+` and `-` work kind by kind."""

    input: int = 0
    """Input tokens that were neither read from the cache nor written to it."""
    output: int = 0
    """Output tokens, thinking included."""
    cache_read: int = 0
    """Input tokens read from the cache."""
    cache_write_5m: int = 0
    """Input tokens written to the cache for five minutes."""
    cache_write_1h: int = 0
    """Input tokens written to the cache for an hour."""
    thinking: int = 0
    """Thinking tokens, already counted in the output."""
    web_searches: int = 0
    """Web searches on the API's side."""
    cost: float = 0.0
    """US dollars; 0 before prices were applied."""

    @property
    def counts(self) -> Counts:
        """Return the amounts without dollars, as a plain tuple."""
        return self[:7]

    @property
    def tokens(self) -> int:
        """Return all tokens."""
        return sum(self[:5])

    @property
    def without_cost(self) -> "Amounts":
        """Return the amounts without dollars."""
        return self._replace(cost=0.0)

    @property
    def unsplit(self) -> "Amounts":
        """Return the amounts with all cache writes as five-minute ones, as in a total that does not split them."""
        return self._replace(cache_write_5m=self.cache_write_5m + self.cache_write_1h, cache_write_1h=0)

    @property
    def comparable(self) -> "Amounts":
        """Return the amounts that totals of all CLI versions state alike: unsplit, without thinking and dollars."""
        uncached, output, read, five_minutes, hour, _, searches, _ = self
        return Amounts(uncached, output, read, five_minutes + hour, web_searches=searches)

    @property
    def at_least_zero(self) -> "Amounts":
        """Return the amounts with zeros in place of negative numbers."""
        return Amounts._make(max(0, number) for number in self)

    # A sum of tuples would be a longer tuple.
    def __add__(self, other: "Amounts") -> "Amounts":  # pyright: ignore[reportIncompatibleMethodOverride]
        a, b, c, d, e, f, g, h = self
        i, j, k, m, n, o, p, q = other
        return Amounts(a + i, b + j, c + k, d + m, e + n, f + o, g + p, h + q)

    def __sub__(self, other: "Amounts") -> "Amounts":
        a, b, c, d, e, f, g, h = self
        i, j, k, m, n, o, p, q = other
        return Amounts(a - i, b - j, c - k, d - m, e - n, f - o, g - p, h - q)


NOTHING = Amounts()
"""No tokens, searches and dollars."""
