"""Choice of the recorded answer for a request: the same content, in recorded order. It knows no HTTP and no modes.

The error for a request without an answer has the difference to the most similar recorded request.
"""

import difflib
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from itertools import chain
from pathlib import Path
from typing import cast

from ..api.errors import CassetteError
from .episodes import Episode, RecordedAnswer, RecordedRequest

_REMEDY = "If the change is intended, record it: mode `new_episodes` adds it, `rewrite` records all again."
# Longer lines, such as images, are split, so that the difference shows the changed part only.
_WIDTH = 100
_MOST_LINES = 60


class Player:
    """A cassette's answers, each used once."""

    def __init__(self, path: Path, episodes: Iterable[Episode]) -> None:
        self._path = path
        self._answers: dict[str, list[RecordedAnswer]] = {}
        self._days: set[str] = set()
        for episode in episodes:
            self._answers.setdefault(key_of(episode.request), []).append(episode.answer)
            if episode.today:
                self._days.add(episode.today)
        self._unused = {key: iter(answers) for key, answers in self._answers.items()}

    def take(self, request: RecordedRequest) -> RecordedAnswer | None:
        """Return the next answer to a request, or None if no more are recorded.

        Today's date in the request also matches the recording date in a recorded request.
        """
        unused = chain.from_iterable(self._unused.get(key, ()) for key in self._keys(request))
        return next(unused, None)

    def missing(self, request: RecordedRequest) -> CassetteError:
        """Return the error for a request without an answer."""
        keys = self._keys(request)
        for key in keys:
            if key in self._answers:
                times = len(self._answers[key])
                return CassetteError(
                    f"{request.method} {request.path} came {times + 1} times with the same content, but the cassette "
                    f"{self._path} has {times} {'answer' if times == 1 else 'answers'} to it. {_REMEDY}"
                )
        # With the recording date, so that the difference does not show it.
        dated, *candidates = [RecordedRequest(**json.loads(key)) for key in (keys[-1], *self._answers)]
        return CassetteError(not_recorded(self._path, dated, candidates))

    def _keys(self, request: RecordedRequest) -> list[str]:
        key, today = key_of(request), date.today().isoformat()
        return [key, *(key.replace(today, day) for day in sorted(self._days))]


def key_of(request: RecordedRequest) -> str:
    """Return a text that is the same for requests with the same content."""
    return json.dumps(request.as_json(), sort_keys=True)


def today_in(request: RecordedRequest) -> str | None:
    """Return today's date if a request contains it."""
    today = date.today().isoformat()
    return today if today in key_of(request) else None


def not_recorded(path: Path, request: RecordedRequest, candidates: Sequence[RecordedRequest]) -> str:
    """Return the message for a request that differs from all recorded requests."""
    title = f"{request.method} {request.path} is not in the cassette {path}"
    request_lines = lines_of(request)
    method_and_path = (request.method, request.path)
    same_path = [
        lines_of(candidate) for candidate in candidates if (candidate.method, candidate.path) == method_and_path
    ]
    if not same_path:
        return f"{title}, which has no request to that path. {_REMEDY}"
    nearest = max(same_path, key=lambda lines: difflib.SequenceMatcher(None, lines, request_lines).quick_ratio())
    changes = [*difflib.unified_diff(nearest, request_lines, "recorded", "requested", lineterm="")]
    if len(changes) > _MOST_LINES:
        changes[_MOST_LINES:] = [f"... and {len(changes) - _MOST_LINES} more lines"]
    return "\n".join([f"{title}; the most similar recorded request differs:", *changes, _REMEDY])


def lines_of(request: RecordedRequest) -> list[str]:
    """Return a request as lines: each field, sorted by name, and each line of a text."""
    return [part for line in _lines(request.as_json(), "") for part in _split(line)]


def _lines(value: object, label: str, indent: str = "") -> Iterator[str]:
    match value:
        case dict() | list() if value:
            yield f"{indent}{label}{'{' if isinstance(value, dict) else '['}"
            if isinstance(value, dict):
                items = sorted(cast("dict[str, object]", value).items())
            else:
                items = [("", item) for item in cast("list[object]", value)]
            for name, item in items:
                yield from _lines(item, f"{name}: " if name else "", f"{indent}  ")
            yield f"{indent}{'}' if isinstance(value, dict) else ']'}"
        case str() if "\n" in value:
            yield f"{indent}{label}|"
            yield from (f"{indent}  {line}" for line in value.split("\n"))
        case _:
            yield f"{indent}{label}{json.dumps(value, ensure_ascii=False)}"


def _split(line: str) -> list[str]:
    text = line.lstrip(" ")
    indent = line[: len(line) - len(text)]
    return [f"{indent}{text[at : at + _WIDTH]}" for at in range(0, max(1, len(text)), _WIDTH)]
