"""The list prices for Anthropic models, in US dollars per million tokens, on the day named here.

A model entry is (input, output, cache read, 5-minute write, 1-hour write). The CLI bills by the same figures; the
integration tests run each model through it and compare. `Prices.from_file` reads another table in the same form.
"""

AS_OF = "2026-11-20"

MODELS: dict[str, tuple[float, float, float, float, float]] = {
    "claude-3-haiku": (0.25, 1.25, 0.03, 0.3, 0.5),
    "claude-3-opus": (15, 75, 1.5, 18.75, 30),
    "claude-3-sonnet": (3, 15, 0.3, 3.75, 6),
    "claude-3-5-haiku": (0.8, 4, 0.08, 1, 1.6),
    "claude-3-5-sonnet": (3, 15, 0.3, 3.75, 6),
    "claude-3-7-sonnet": (3, 15, 0.3, 3.75, 6),
    "claude-sonnet-4-0": (3, 15, 0.3, 3.75, 6),
    "claude-opus-4-0": (15, 75, 1.5, 18.75, 30),
    "claude-opus-4-1": (15, 75, 1.5, 18.75, 30),
    "claude-haiku-4-5": (1, 5, 0.1, 1.25, 2),
    "claude-sonnet-4-5": (3, 15, 0.3, 3.75, 6),
    "claude-opus-4-5": (5, 25, 0.5, 6.25, 10),
    "claude-sonnet-4-6": (3, 15, 0.3, 3.75, 6),
    "claude-opus-4-6": (5, 25, 0.5, 6.25, 10),
    "claude-opus-4-7": (5, 25, 0.5, 6.25, 10),
    "claude-opus-4-8": (5, 25, 0.5, 6.25, 10),
    "claude-sonnet-5": (2, 10, 0.2, 2.5, 4),
    "claude-opus-5": (5, 25, 0.5, 6.25, 10),
    "claude-fable-5": (10, 50, 1, 12.5, 20),
    "claude-mythos-5": (10, 50, 1, 12.5, 20),
    "claude-fable-5-1": (10, 50, 0.25, 12.5, 20),
    "claude-mythos-5-1": (10, 50, 0.25, 12.5, 20),
    "claude-fable-5-2": (8, 40, 0.2, 10, 16),
    "claude-mythos-5-2": (8, 40, 0.2, 10, 16),
    "claude-haiku-5-5": (0.1, 0.5, 0.01, 0.125, 0.2),
    "claude-sonnet-5-5": (2, 10, 0.1, 2.5, 4),
    "claude-opus-5-5": (4, 20, 0.2, 5, 8),
}

FAST: dict[str, tuple[float, float, float, float, float]] = {
    "claude-opus-4-6": (30, 150, 3, 37.5, 60),
    "claude-opus-4-7": (30, 150, 3, 37.5, 60),
    "claude-opus-4-8": (10, 50, 1, 12.5, 20),
    "claude-opus-5": (10, 50, 1, 12.5, 20),
    "claude-opus-5-5": (8, 40, 0.4, 10, 16),
    "claude-fable-5-2": (16, 80, 0.4, 20, 32),
    "claude-mythos-5-2": (16, 80, 0.4, 20, 32),
}
"""Prices with `speed: fast`. A model that is not here has no fast mode and costs the same."""

LONG: dict[str, tuple[int, tuple[float, float, float, float, float]]] = {
    "claude-haiku-5-5": (100_000, (0.5, 2.5, 0.05, 0.625, 1)),
}
"""Prices for a whole request whose prompt, cache included, has more than this many tokens."""

GEO = {"us": 1.1}
"""Factors on all tokens for processing that is bound to a region."""

TIERS = {"batch": 0.5}
"""Factors on all tokens by service tier."""

WEB_SEARCH = 0.01
"""Price per web search, for any model."""
