"""`Cassette`: a file with recorded answers; and `Tape`: a cassette in use, which replays, records and writes it."""

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from starlette.responses import Response, StreamingResponse

from ..api.errors import CassetteError, MissingCassetteError
from ..api.responses import paced
from ..api.routes import COUNT_TOKENS, MESSAGES, MODELS, route_of
from ..api.types import Call, Login
from .episodes import Episode, Episodes, RecordedAnswer, RecordedRequest, load, save
from .events import encode_event_or_text
from .replay import Player, key_of, today_in
from .scrub import Scrubber

if TYPE_CHECKING:
    from .recorder import Recorder

RecordMode: TypeAlias = Literal["none", "once", "new_episodes", "all", "rewrite"]
"""Recording mode, with the names from VCR and pytest-recording.

- `none`: replay only.
- `once`: record if the file does not exist, otherwise replay only.
- `new_episodes`: replay the recorded requests, and record all others.
- `all`: record each request, in place of earlier recordings; keep the file's other recordings.
- `rewrite`: record each request into a new file.
"""

_API = "https://api.anthropic.com"
_OAUTH = "Bearer sk-ant-oat"
# Parameters of the model list. Others, such as `beta`, change no answer, and may be a gateway key.
_PARAMETERS = ("after_id", "before_id", "limit")


@dataclass(frozen=True, slots=True)
class Cassette:
    """File with requests to the Messages API and recorded answers, for `LoopbackServer(cassette=…)`."""

    path: Path | str
    record: RecordMode = "none"
    scrub: Mapping[str, str] = field(default_factory=dict[str, str])
    """Regular expressions and their replacements, as for `re.sub`, for each string in requests and answers.

    Credentials and ids are always removed. A text that changes with each run, such as the time, is ignored if a pattern
    replaces it.
    """
    timing: bool = False
    """True if a replay takes as long as the recorded answer did, event for event."""
    upstream: str | None = field(default=None, repr=False)
    """Base URL of the API to record. Default: the variable `ANTHROPIC_BASE_URL`, else the public API."""

    def upstream_url(self) -> str:
        """Return the base URL of the API to record, without a slash at the end."""
        return (self.upstream or os.environ.get("ANTHROPIC_BASE_URL") or _API).rstrip("/")


class Tape:
    """Recorded answers, and the upstream API if the mode records.

    Raises:
        CassetteError: The file is missing and the mode does not record, it is not a cassette, or a setting is invalid.
    """

    def __init__(self, cassette: Cassette, folders: Mapping[str, str]) -> None:
        mode = cassette.record
        if mode not in get_args(RecordMode):
            raise CassetteError(f"record must be one of {', '.join(get_args(RecordMode))}, not {mode!r}")
        self._path = Path(cassette.path)
        self._mode: RecordMode = mode
        self._timing = cassette.timing
        self._scrubber = Scrubber(cassette.scrub, folders)
        exists = self._path.exists()
        self._content = load(self._path) if exists and mode != "rewrite" else Episodes()
        plays = mode in ("none", "once", "new_episodes")
        self._player = Player(self._path, map(self._scrubbed, self._content.episodes) if plays else ())
        self._new_episodes: dict[int, Episode] = {}
        self._numbers = count()
        self._recorder: Recorder | None = None
        if mode in ("new_episodes", "all", "rewrite") or (mode == "once" and not exists):
            # Imported here: a replay needs no HTTP client.
            from . import recorder

            self._recorder = recorder.Recorder(cassette.upstream_url(), self._scrubber)
        elif not exists:
            raise MissingCassetteError(f"there is no cassette {self._path}; record it with the mode `once`")

    @property
    def records(self) -> bool:
        """True if requests can reach the upstream API."""
        return self._recorder is not None

    @property
    def login(self) -> Login:
        """The recorded client kind of login."""
        return self._content.login

    async def respond(self, call: Call) -> Response | None:
        """Return the recorded answer, or the upstream API's; None in a replay if the path is never recorded.

        Raises:
            CassetteError: The request is not recorded, or the file cannot be written.
            UpstreamError: The upstream API did not answer.
        """
        self._scrubber.learn(call.headers, call.body)
        if not _is_recordable(call):
            return await self._recorder.forward(call, lambda answer: None) if self._recorder else None
        request = self._request(call)
        if answer := self._player.take(request):
            return await self._replayed(answer)
        if self._recorder is None:
            raise self._player.missing(request)
        if call.headers.get("authorization", "").startswith(_OAUTH):
            self._content.login = "oauth"
        return await self._recorder.forward(call, self._keep(request))

    def _request(self, call: Call) -> RecordedRequest:
        query = {name: value for name, value in call.query.items() if name in _PARAMETERS}
        body = self._scrubber.request_body(call.body) if call.body else None
        return RecordedRequest(call.method, call.path, query, body)

    async def _replayed(self, answer: RecordedAnswer) -> Response:
        """Return the response for a recorded answer, with `timing` as late and as slow as in the recording."""
        if answer.events is None:
            await asyncio.sleep(answer.after if self._timing else 0)
            return Response(answer.http_body(), answer.status, answer.http_headers())
        chunks = [encode_event_or_text(event) for _, event in answer.events]
        pauses = [seconds if self._timing else 0.0 for seconds, _ in answer.events]
        return StreamingResponse(paced(chunks, pauses, cut=answer.cut), answer.status, answer.http_headers())

    def _keep(self, request: RecordedRequest) -> Callable[[RecordedAnswer], None]:
        """Return the callback for the answer. Answers are written in request order."""
        number = next(self._numbers)

        def keep(answer: RecordedAnswer) -> None:
            if answer.events is not None:
                answer.events = self._scrubber.events(answer.events)
            self._new_episodes[number] = Episode(request, answer, today_in(request))
            self._save()

        return keep

    def _save(self) -> None:
        new_episodes = [self._new_episodes[number] for number in sorted(self._new_episodes)]
        old_episodes = self._content.episodes
        if self._mode == "all":
            new_keys = {key_of(episode.request) for episode in new_episodes}
            old_episodes = [episode for episode in old_episodes if key_of(episode.request) not in new_keys]
        save(self._path, Episodes(self._content.login, [*old_episodes, *new_episodes]))

    def _scrubbed(self, episode: Episode) -> Episode:
        """Return a loaded episode, scrubbed again, because the patterns may have changed since the recording."""
        body = episode.request.body
        return replace(episode, request=replace(episode.request, body=body and self._scrubber.request_body(body)))


def _is_recordable(call: Call) -> bool:
    """Return true if a request belongs to the Messages API. Others may reveal the account, and are only passed on."""
    path = route_of(call.path).path
    if call.method == "GET":
        return path == MODELS or path.startswith(f"{MODELS}/")
    return call.method == "POST" and path in (MESSAGES, COUNT_TOKENS)
