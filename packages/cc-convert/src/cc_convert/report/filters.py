"""Filters that select a report's requests."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta, tzinfo
from fnmatch import fnmatchcase
from typing import NamedTuple, Protocol, TypeVar

from ..folding import fold
from ..log_files.model_names import canonical_model
from ..log_files.rows import LABELS
from .buckets import QUARTER


class FilterError(ValueError):
    """Raised for an invalid filter."""


class _Filtered(Protocol):
    @property
    def session(self) -> str: ...
    @property
    def project(self) -> str: ...
    @property
    def model(self) -> str: ...


FilteredT = TypeVar("FilteredT", bound=_Filtered)


class Filter(NamedTuple):
    """Bounds and name parts; an empty field accepts everything."""

    since: float | None = None
    """Start, in seconds since 1970."""
    until: float | None = None
    """End, exclusive."""
    project: str = ""
    """Part of the project folder."""
    model: str = ""
    """Part of the model name."""
    session: str = ""
    """Beginning of the session id."""
    branch: str = ""
    """The git branch; here and below, `*` and `?` stand for any characters, as in file names."""
    host: str = ""
    entrypoint: str = ""
    version: str = ""

    @property
    def by_quarters(self) -> bool:
        """Return true if the bounds are quarter-hours: then the filter can be applied to buckets."""
        return all(bound is None or bound % QUARTER == 0 for bound in (self.since, self.until))

    def select(self, rows: Iterable[FilteredT], time: Callable[[FilteredT], float | None]) -> list[FilteredT]:
        """Return the accepted rows. `time` gives a row's time; a row without a time passes only without bounds."""
        return [row for row in rows if self._passes(row, time(row))]

    def unmatched(self, rows: Sequence[_Filtered]) -> Iterator[tuple[str, str, set[str]]]:
        """Yield the name of each field with a text that no row has, the text, and texts that would match."""
        texts = {name: text for name, text in self._asdict().items() if text and isinstance(text, str)}
        for name, text in texts.items():
            if not Filter()._replace(**{name: text}).select(rows, lambda _: None):
                matches = {getattr(row, name) for row in rows}
                if name in ("project", "model"):
                    matches |= {part for path in matches for part in re.split(r"[/\\-]", path) if len(part) > 2}
                yield name, text, matches - {""}

    def _passes(self, row: _Filtered, time: float | None) -> bool:
        if self.since is not None and (time is None or time < self.since):
            return False
        if self.until is not None and (time is None or time >= self.until):
            return False
        if (self.project and fold(self.project) not in fold(row.project)) or not row.session.startswith(self.session):
            return False
        if self.model not in row.model and self.model != canonical_model(row.model):
            return False
        patterns = [(name, pattern) for name in LABELS if (pattern := getattr(self, name))]
        return all(fnmatchcase(fold(getattr(row, name)), fold(pattern)) for name, pattern in patterns)


def moment(text: str, zone: tzinfo | None, *, end: bool = False) -> float:
    """Return the time for a day, or a day with a time, in a zone; with `end`, the end of the day.

    Any other text raises `FilterError`.
    """
    try:
        compact = len(text) == 8 and text.isdigit()
        date = datetime.strptime(text, "%Y%m%d") if compact else datetime.fromisoformat(text)
        if date.tzinfo is None:
            if end and (compact or len(text) == 10):
                date += timedelta(days=1)
            date = date.replace(tzinfo=zone) if zone else date
        return date.timestamp()
    except (ValueError, OverflowError):
        raise FilterError(f"{text!r} is not a day or a time: write 2026-11-20 or 2026-11-20T14:00") from None


def last_days(text: str, zone: tzinfo | None, current_time: datetime) -> float:
    """Return the start of a span such as `7d`, `2w` or `36h`. Days and weeks count whole days, including today.

    Any other text raises `FilterError`.
    """
    number, unit = text[:-1], text[-1:]
    if not number.isdecimal() or unit not in "hdw" or not 0 < int(number) < 10_000:
        raise FilterError(f"{text!r} is not a span: write a number and h, d or w, such as 7d")
    if unit == "h":
        return (current_time - timedelta(hours=int(number))).timestamp()
    days = int(number) * (7 if unit == "w" else 1)
    today = current_time.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=zone)
    return (today - timedelta(days=days - 1)).timestamp()
