"""Verdict on a case: each error must have a cause that affected the case, or was active while it ran.

Pure: names, times and numbers only.

- An API fault affects a single request in a certain case, and explains an error in that case alone.
- A killed process served a single case at most: each kill explains an error in a case that was running.
- A lasting fault explains the errors in all cases at that time.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .faults import FAULTS, FaultRecord

RIGHT = "right"
OTHER = "other"
"""An error with which no case should end."""

# Seconds between a process's death and the moment when the case detects it.
_NOTICED_WITHIN = 1.0


@dataclass(frozen=True)
class Ended:
    """A case's outcome: `error` is `RIGHT`, an HTTP status as text, or a name such as `CONNECTION`."""

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
    lasting = [record for record in records if FAULTS[record.fault].seconds]
    kills = sorted((record for record in records if FAULTS[record.fault].is_kill), key=lambda record: record.begun)
    # Each kill explains the first run to end that it can explain, so that a later run does not lack a cause.
    for end in sorted(ends, key=lambda end: end.ended):
        if end.error == RIGHT:
            continue
        certain = [records[index] for index in (hits or {}).get(end.mark, ())]
        active = [
            record
            for record in (*lasting, *kills)
            if end.begun <= record.ended + _NOTICED_WITHIN and record.begun <= end.ended
        ]
        cause = next((record for record in (*certain, *active) if end.error in FAULTS[record.fault].errors), None)
        if cause is None:
            verdict.broken.append(f"{end.kind} {end.mark} ended with {end.error}, without a known cause: {end.message}")
            continue
        verdict.causes[cause.fault] += 1
        if cause in kills:
            kills.remove(cause)
    return verdict
