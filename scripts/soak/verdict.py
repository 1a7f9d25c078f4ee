"""Verdict on a case: each error must have a cause that affected the case, or was active while it ran.

Pure: names, times and numbers only.

- An API fault affects a single request in a certain case, and explains an error in that case alone.
- A killed process served a single case at most: each kill explains an error in a case that was running.
- A lasting fault explains the errors in all cases at that time.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

RIGHT = "right"
CONNECTION = "connection"
"""The process failed, or lost the API."""
TOOL = "tool"
"""A tool in the CLI's own loop could not be called."""
NO_DESCRIPTOR = "no descriptor"
"""An error from the operating system, where a file is read before a request is made."""
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
"""API faults, for which the affected request is certain."""
SINGLE = frozenset({"kill", "bridge"})
"""Faults that affect at most a single case each."""

# Seconds between a process's death and the moment when the case detects it.
_NOTICED_WITHIN = 1.0


@dataclass
class FaultRecord:
    """A fault, and the time when it was active."""

    fault: str
    begun: float
    ended: float = math.inf


@dataclass(frozen=True)
class Ended:
    """A case's outcome: `error` is `RIGHT`, an HTTP status as text, or a name from above."""

    kind: str
    mark: str
    begun: float
    ended: float
    error: str = RIGHT
    message: str = ""
    runs: int = 1
    """Number of started agent runs."""


@dataclass
class Verdict:
    """Verdict on some cases."""

    outcomes: Counter[str] = field(default_factory=Counter[str])
    causes: Counter[str] = field(default_factory=Counter[str])
    """Number of errors by fault."""
    broken: list[str] = field(default_factory=list[str])
    """Outcomes without a cause."""


def judge(
    ends: Iterable[Ended], records: Sequence[FaultRecord], hits: Mapping[str, Iterable[int]] | None = None
) -> Verdict:
    """Judge the outcomes of all cases in a round.

    `hits` has, by a case's mark, the indices of the faults in `records` that affected the case's requests.
    """
    verdict = Verdict()
    unused = sorted((record for record in records if record.fault in SINGLE), key=lambda record: record.begun)
    # Each kill explains the first run to end that it can explain, so that a later run does not lack a cause.
    for end in sorted(ends, key=lambda end: end.ended):
        verdict.outcomes[end.error] += 1
        if end.error == RIGHT:
            continue
        fallen = [records[index] for index in (hits or {}).get(end.mark, ())]
        cause = _cause(end, fallen, records) or _killed(end, unused)
        if cause is None:
            verdict.broken.append(f"{end.kind} {end.mark} ended with {end.error}, without a known cause: {end.message}")
        else:
            verdict.causes[cause] += 1
    return verdict


def _cause(end: Ended, fallen: Iterable[FaultRecord], records: Iterable[FaultRecord]) -> str | None:
    lasting = [record for record in records if record.fault not in AIMED | SINGLE and _meets(end, record)]
    return next((record.fault for record in (*fallen, *lasting) if end.error in _DOES.get(record.fault, ())), None)


def _killed(end: Ended, unused: list[FaultRecord]) -> str | None:
    for record in unused:
        if end.error in _DOES[record.fault] and _meets(end, record):
            unused.remove(record)
            return record.fault
    return None


def _meets(end: Ended, record: FaultRecord) -> bool:
    return end.begun <= record.ended + _NOTICED_WITHIN and record.begun <= end.ended
