"""What goes wrong in which round. Pure, and the same for the same seed."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

ROUND_SECONDS = 15.0
"""How long a round of a long soak is."""
_LEAST_ROUNDS = 3
# In a calm round each run must end well; so a fault that did a lasting harm is seen.
_CALM_EVERY = 5
_FULL_REST_EVERY = 6
# With more of them hardly a run would come to anything, or could be told why it did not.
_MOST_TOGETHER = 5


@dataclass(frozen=True)
class Round:
    """One round: its number, what goes wrong in it, and whether all processes are ended after it."""

    number: int
    faults: tuple[str, ...]
    seconds: float
    ends_processes: bool


def round_seconds(minutes: float) -> float:
    """How long a round is, so that a short soak has some, too."""
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
