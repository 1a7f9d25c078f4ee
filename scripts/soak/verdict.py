"""Verdict on the end of a case: each error must have a cause that affected the case, or was active while it ran.

Pure: names, times and numbers only.

- A fault of the API affects a request of one known case, and explains an error of that case alone.
- A killed process served one case at most: each kill explains one error, of a case that was running.
- A lasting fault explains the errors of all cases of that time.
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
"""An error of the operating system, where a file is read before a request is made."""
OTHER = "other"
"""An error with which no case should end."""

_DOES: Mapping[str, frozenset[str]] = {
    "429": frozenset({"429"}),
    "500": frozenset({"500"}),
    "529": frozenset({"529"}),
    "cut": frozenset({CONNECTION}),
    # As an event in the stream; after a complete block it can only be reported as a connection error.
    "event": frozenset({"529", CONNECTION}),
    "kill": frozenset({CONNECTION}),
    "bridge": frozenset({TOOL, CONNECTION}),
    "api": frozenset({CONNECTION}),
    "disk": frozenset({CONNECTION}),
    "descriptors": frozenset({CONNECTION, NO_DESCRIPTOR}),
}
AIMED = frozenset({"429", "500", "529", "cut", "event"})
"""Faults of the API, for which the affected request is known."""
SINGLE = frozenset({"kill", "bridge"})
"""Faults that affect one case each, at most."""

# Seconds between the death of a process and the moment when its case detects it.
_NOTICED_WITHIN = 1.0


@dataclass
class FaultRecord:
    """A fault, and the time when it was active."""

    fault: str
    begun: float
    ended: float = math.inf


@dataclass(frozen=True)
class Ended:
    """Outcome of a case: `error` is `RIGHT`, an HTTP status as text, or one of the names above."""

    kind: str
    mark: str
    begun: float
    ended: float
    error: str = RIGHT
    said: str = ""
    runs: int = 1
    """Number of agent runs started."""


@dataclass
class Verdict:
    """Verdict on some cases."""

    outcomes: Counter[str] = field(default_factory=Counter[str])
    causes: Counter[str] = field(default_factory=Counter[str])
    """Number of errors that each fault has caused."""
    broken: list[str] = field(default_factory=list[str])
    """Outcomes without a cause."""


def judge(
    ends: Iterable[Ended], records: Sequence[FaultRecord], hits: Mapping[str, Iterable[int]] | None = None
) -> Verdict:
    """Return for each outcome whether it was right.

    Args:
        ends: The outcomes of all cases of a round.
        records: The faults of the round.
        hits: By the mark of a case, the indices in `records` of the faults that affected its requests.
    """
    verdict = Verdict()
    unused = sorted((one for one in records if one.fault in SINGLE), key=lambda one: one.begun)
    # Each kill is assigned to the run that ended first of those that it can explain, so that no later one lacks it.
    for end in sorted(ends, key=lambda end: end.ended):
        verdict.outcomes[end.error] += 1
        if end.error == RIGHT:
            continue
        fallen = [records[index] for index in (hits or {}).get(end.mark, ())]
        cause = _cause(end, fallen, records) or _killed(end, unused)
        if cause is None:
            verdict.broken.append(f"{end.kind} {end.mark} ended with {end.error}, without a known cause: {end.said}")
        else:
            verdict.causes[cause] += 1
    return verdict


def _cause(end: Ended, fallen: Iterable[FaultRecord], records: Iterable[FaultRecord]) -> str | None:
    lasting = [one for one in records if one.fault not in AIMED | SINGLE and _meets(end, one)]
    return next((one.fault for one in (*fallen, *lasting) if end.error in _DOES.get(one.fault, ())), None)


def _killed(end: Ended, unused: list[FaultRecord]) -> str | None:
    for one in unused:
        if end.error in _DOES[one.fault] and _meets(end, one):
            unused.remove(one)
            return one.fault
    return None


def _meets(end: Ended, one: FaultRecord) -> bool:
    return end.begun <= one.ended + _NOTICED_WITHIN and one.begun <= end.ended
