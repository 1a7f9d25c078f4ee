"""Faults for each round. Pure, and deterministic for a seed."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

ROUND_SECONDS = 15.0
"""Duration of a round in a long soak, in seconds."""
_LEAST_ROUNDS = 3
# In a calm round each run must succeed; so a fault with lasting damage is detected.
_CALM_EVERY = 5
_FULL_REST_EVERY = 6
# With more faults hardly any run would succeed, or a failure would have no clear cause.
_MOST_TOGETHER = 5


@dataclass(frozen=True)
class Round:
    """A round; if `ends_processes`, all processes are stopped after it."""

    number: int
    faults: tuple[str, ...]
    seconds: float
    ends_processes: bool


def round_seconds(minutes: float) -> float:
    """Return a round's duration, so that a short soak has several, too."""
    return min(ROUND_SECONDS, minutes * 60 / _LEAST_ROUNDS)


def planned(seed: int, number: int, faults: Sequence[str], seconds: float) -> Round:
    """Return a round: calm, with each single fault in turn, or with some faults together."""
    chance = Random(f"{seed}/{number}")
    if number % _CALM_EVERY == _CALM_EVERY - 1:
        chosen: Sequence[str] = ()
    elif number % 2:
        chosen = [faults[(number // 2 + seed) % len(faults)]]
    else:
        chosen = chance.sample(faults, min(len(faults), chance.randint(2, _MOST_TOGETHER)))
    return Round(number, tuple(sorted(chosen)), seconds, number % _FULL_REST_EVERY == _FULL_REST_EVERY - 1)
