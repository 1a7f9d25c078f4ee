"""Requests with their answers, and the format of the JSON file that holds them."""

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias, cast

from ..api.errors import CassetteError
from ..api.events import encode_json
from ..api.types import JsonObject, Login
from .events import Event

FORMAT = 1
REQUEST_ID = "req_removed"
_LINE = 120

TimedEvent: TypeAlias = tuple[float, Event]
"""An event of a stream, with the seconds since the last event or since the request."""


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """The part of an HTTP request that must be equal in a replay."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    body: JsonObject | None = None

    def as_json(self) -> JsonObject:
        """Return the fields that are not empty."""
        fields = {"method": self.method, "path": self.path, "query": dict(self.query), "body": self.body}
        return {name: value for name, value in fields.items() if value not in ({}, None)}


@dataclass(slots=True)
class RecordedAnswer:
    """An HTTP response."""

    status: int
    headers: Mapping[str, str]
    after: float = 0.0
    """Seconds from the request to a body that is not streamed."""
    body: object = None
    """The parsed body, or the text if it is not JSON."""
    events: list[TimedEvent] | None = None
    """The streamed events, or None without a stream."""
    cut: bool = False
    """True if the stream ended early: the connection was lost, or the client left."""

    def http_headers(self) -> dict[str, str]:
        """Return the headers with a request id, which clients expect."""
        return {**self.headers, "request-id": REQUEST_ID}

    def http_body(self) -> bytes:
        """Return the body of an answer that is not a stream."""
        return self.body.encode() if isinstance(self.body, str) else encode_json(self.body)

    def as_json(self) -> JsonObject:
        """Return the fields for the file."""
        fields: JsonObject = {"status": self.status, "headers": dict(self.headers)}
        if self.events is None:
            return {**fields, "after": round(self.after, 3), "body": self.body}
        fields["events"] = [{"after": round(seconds, 3), "data": data} for seconds, data in self.events]
        return {**fields, "cut": True} if self.cut else fields


@dataclass(frozen=True)
class Episode:
    """A recorded request with its answer."""

    request: RecordedRequest
    answer: RecordedAnswer
    today: str | None = None
    """The recording date, as in `2026-11-30`, if the request contains it."""

    @cached_property
    def text(self) -> str:
        """The JSON for the file, made once: the file is written again with each new episode."""
        today = {"today": self.today} if self.today else {}
        return pretty({**self.request.as_json(), **today, "response": self.answer.as_json()}, "    ")


@dataclass(slots=True)
class Episodes:
    """Content of a cassette file."""

    login: Login = "api-key"
    """The recorded client kind of login, which decides on the Claude Code system prompt."""
    episodes: list[Episode] = field(default_factory=list[Episode])


def load(path: Path) -> Episodes:
    """Read a cassette."""
    try:
        content = json.loads(path.read_text("utf-8"))
        if content["format"] != FORMAT:
            raise CassetteError(f"{path}: format {content['format']!r} is unknown; this version reads format {FORMAT}")
        return Episodes(content["login"], [_episode(entry) for entry in content["episodes"]])
    except OSError as error:
        raise CassetteError(f"cannot read the cassette {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        problem = f"{type(error).__name__}: {error}"
        raise CassetteError(
            f"{path} is not a cassette ({problem}); correct it, or record it again with the mode `rewrite`"
        ) from error


def save(path: Path, content: Episodes) -> None:
    """Write a cassette in one step, and create its folder."""
    episodes = ",\n".join(f"    {episode.text}" for episode in content.episodes)
    text = f'{{\n  "format": {FORMAT},\n  "login": "{content.login}",\n  "episodes": [\n{episodes}\n  ]\n}}\n'
    # In a process only the server thread writes the cassette, so the process id makes the name unique.
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise CassetteError(f"cannot write the cassette {path}: {error.strerror}") from error


def pretty(value: object, indent: str = "") -> str:
    """Return JSON in which each value that fits has a single line, such as an event of a stream."""
    line = _single_line(value)
    if len(indent) + len(line) <= _LINE or not value or not isinstance(value, (dict, list)):
        return line
    inner = f"{indent}  "
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        brackets, parts = "{}", [f"{json.dumps(name)}: {pretty(item, inner)}" for name, item in fields.items()]
    else:
        brackets, parts = "[]", [pretty(item, inner) for item in cast("list[object]", value)]
    lines = ",\n".join(f"{inner}{part}" for part in parts)
    return f"{brackets[0]}\n{lines}\n{indent}{brackets[1]}"


def _single_line(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return json.dumps(value)
    return text


def _episode(entry: Mapping[str, Any]) -> Episode:
    request = RecordedRequest(entry["method"], entry["path"], entry.get("query") or {}, entry.get("body"))
    response = entry["response"]
    answer = RecordedAnswer(response["status"], response["headers"])
    if "events" in response:
        answer.events = [(event["after"], event["data"]) for event in response["events"]]
        answer.cut = response.get("cut", False)
    else:
        answer.after, answer.body = response.get("after", 0.0), response["body"]
    return Episode(request, answer, entry.get("today"))
