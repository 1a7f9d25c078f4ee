"""Differences that Claude Code causes, each as a function from `AnthropicModel`'s data to the expected data."""

from dataclasses import replace
from typing import Any, cast

from both_ways import Seen


def integers_as_doubles(observed: Seen) -> Seen:
    """The CLI keeps numbers as JavaScript doubles."""
    return replace(observed, bodies=[_doubled(body) for body in observed.bodies])


def _doubled(value: Any) -> Any:
    match value:
        case dict():
            return {name: _doubled(item) for name, item in cast("dict[str, Any]", value).items()}
        case list():
            return [_doubled(item) for item in cast("list[Any]", value)]
        case int() if abs(value) > 2**53:
            return int(float(value))
        case _:
            return value


def with_advice(observed: Seen) -> Seen:
    """Errors of a refused request end with advice."""
    says = f"{observed.outcome['says']}. Change the request before sending it again."
    return replace(observed, outcome={**observed.outcome, "says": says})


def in_its_own_name(observed: Seen) -> Seen:
    """Errors contain our class and provider names."""
    says = observed.outcome["says"].replace("AnthropicModel", "ClaudeCodeModel").replace("'anthropic'", "'claude-code'")
    return replace(observed, outcome={**observed.outcome, "says": says})
