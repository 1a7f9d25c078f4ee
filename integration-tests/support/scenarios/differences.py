"""The differences that Claude Code in between makes, each as what becomes of what `AnthropicModel` shows."""

from dataclasses import replace
from typing import Any, cast

from both_ways import Seen


def integers_as_doubles(seen: Seen) -> Seen:
    """The CLI keeps numbers as JavaScript has them."""
    return replace(seen, bodies=[_doubled(body) for body in seen.bodies])


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


def in_its_own_name(seen: Seen) -> Seen:
    """Errors that name the model's class and the provider name ours."""
    says = seen.outcome["says"].replace("AnthropicModel", "ClaudeCodeModel").replace("'anthropic'", "'claude-code'")
    return replace(seen, outcome={**seen.outcome, "says": says})
