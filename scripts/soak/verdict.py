"""Whether the end of a case was right: each error must come from what was done to it, or was on while it ran.

Pure: it knows names, times and numbers.

- A fault of the API is known to have fallen on a request of one case, and explains an error of that case alone.
- A process that was killed served one case at most: each kill explains one error, of a case that was going on.
- What was on for a while explains the errors of all cases of that time.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

RIGHT = "right"
CONNECTION = "connection"
"""The process failed, or lost the API."""
TOOL = "tool"
"""A tool of the CLI's own loop could not be called."""
NO_DESCRIPTOR = "no descriptor"
"""The operating system's own error, where something is read before a request is made."""
OTHER = "other"
"""No error that a case should end with."""

_DOES: Mapping[str, frozenset[str]] = {
    "429": frozenset({"429"}),
    "500": frozenset({"500"}),
    "529": frozenset({"529"}),
    "cut": frozenset({CONNECTION}),
    # As an event in the stream; after a whole block it can only be told as a broken connection.
    "event": frozenset({"529", CONNECTION}),
    "kill": frozenset({CONNECTION}),
    "bridge": frozenset({TOOL, CONNECTION}),
    "api": frozenset({CONNECTION}),
    "disk": frozenset({CONNECTION}),
    "descriptors": frozenset({CONNECTION, NO_DESCRIPTOR}),
}
AIMED = frozenset({"429", "500", "529", "cut", "event"})
"""Faults of the API, of which is known on whom they fell."""
SINGLE = frozenset({"kill", "bridge"})
"""Faults that harm one case each, at most."""

# Between the death of a process and the moment in which its case notices; seconds.
_NOTICED_WITHIN = 1.0


@dataclass
class Happening:
    """A fault, and when it was on."""

    fault: str
    begun: float
    ended: float = math.inf


@dataclass(frozen=True)
class Ended:
    """How a case ended: `error` is `RIGHT`, an HTTP status as text, or one of the names above."""

    kind: str
    mark: str
    begun: float
    ended: float
    error: str = RIGHT
    said: str = ""
    runs: int = 1
    """How many runs of agents were begun."""


@dataclass
class Verdict:
    """What came of some cases."""

    outcomes: Counter[str] = field(default_factory=Counter[str])
    causes: Counter[str] = field(default_factory=Counter[str])
    """How many errors each fault has caused."""
    broken: list[str] = field(default_factory=list[str])
    """The ends that nothing explains."""


def judge(
    ends: Iterable[Ended], happenings: Sequence[Happening], hits: Mapping[str, Iterable[int]] | None = None
) -> Verdict:
    """Say of each end whether it was right.

    Args:
        ends: The ends of all cases of a round.
        happenings: What was done in it.
        hits: By the mark of a case, the indices in `happenings` of what has fallen on its requests.
    """
    verdict = Verdict()
    unused = sorted((one for one in happenings if one.fault in SINGLE), key=lambda one: one.begun)
    # Each kill goes to the run that ended first of those that it can explain, so that no other one lacks it.
    for end in sorted(ends, key=lambda end: end.ended):
        verdict.outcomes[end.error] += 1
        if end.error == RIGHT:
            continue
        fallen = [happenings[index] for index in (hits or {}).get(end.mark, ())]
        cause = _cause(end, fallen, happenings) or _killed(end, unused)
        if cause is None:
            verdict.broken.append(f"{end.kind} {end.mark} ended with {end.error}, which nothing explains: {end.said}")
        else:
            verdict.causes[cause] += 1
    return verdict


def _cause(end: Ended, fallen: Iterable[Happening], happenings: Iterable[Happening]) -> str | None:
    lasting = [one for one in happenings if one.fault not in AIMED | SINGLE and _meets(end, one)]
    return next((one.fault for one in (*fallen, *lasting) if end.error in _DOES.get(one.fault, ())), None)


def _killed(end: Ended, unused: list[Happening]) -> str | None:
    for one in unused:
        if end.error in _DOES[one.fault] and _meets(end, one):
            unused.remove(one)
            return one.fault
    return None


def _meets(end: Ended, one: Happening) -> bool:
    return end.begun <= one.ended + _NOTICED_WITHIN and one.begun <= end.ended
