"""Choice of the recorded answer for a request: the same content, in recorded order. It knows no HTTP and no modes."""

import json
from collections.abc import Iterable
from datetime import date
from pathlib import Path

from ..api.errors import CassetteError
from .difference import not_recorded, used_up
from .episodes import Episode, RecordedAnswer, RecordedRequest


class Player:
    """A cassette's answers, each used once."""

    def __init__(self, path: Path, episodes: Iterable[Episode]) -> None:
        self._path = path
        self._requests: dict[str, RecordedRequest] = {}
        self._answers: dict[str, list[RecordedAnswer]] = {}
        self._use_counts: dict[str, int] = {}
        self._days: set[str] = set()
        for episode in episodes:
            key = key_of(episode.request)
            self._requests[key] = episode.request
            self._answers.setdefault(key, []).append(episode.answer)
            if episode.today:
                self._days.add(episode.today)

    def take(self, request: RecordedRequest) -> RecordedAnswer | None:
        """Return the next answer to a request, or None if no more are recorded.

        Today's date in the request also matches the recording date in a recorded request.
        """
        for key in self._keys(request):
            count = self._use_counts.get(key, 0)
            if count < len(self._answers.get(key, ())):
                self._use_counts[key] = count + 1
                return self._answers[key][count]
        return None

    def missing(self, request: RecordedRequest) -> CassetteError:
        """Return the error for a request without an answer."""
        keys = self._keys(request)
        for key in keys:
            if key in self._answers:
                return CassetteError(used_up(self._path, request, len(self._answers[key])))
        # With the recording date, so that the difference does not show it.
        dated = RecordedRequest(**json.loads(keys[-1]))
        return CassetteError(not_recorded(self._path, dated, list(self._requests.values())))

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
