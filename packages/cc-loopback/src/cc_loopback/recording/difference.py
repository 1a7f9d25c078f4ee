"""The error for a request that is not in the cassette, with the difference to the most similar recorded request."""

import difflib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from .episodes import RecordedRequest

_REMEDY = "If the change is intended, record it: mode `new_episodes` adds it, `rewrite` records all again."
# Longer lines, such as images, are split, so that the difference shows the changed part only.
_WIDTH = 100
_MOST_LINES = 60


def not_recorded(path: Path, request: RecordedRequest, candidates: Sequence[RecordedRequest]) -> str:
    """Return the message for a request that differs from all recorded requests."""
    title = f"{request.method} {request.path} is not in the cassette {path}"
    request_lines = lines_of(request)
    method_and_path = (request.method, request.path)
    same_path = [lines_of(other) for other in candidates if (other.method, other.path) == method_and_path]
    if not same_path:
        return f"{title}, which has no request to that path. {_REMEDY}"
    nearest = max(same_path, key=lambda lines: difflib.SequenceMatcher(None, lines, request_lines).quick_ratio())
    changes = [*difflib.unified_diff(nearest, request_lines, "recorded", "requested", lineterm="")]
    if len(changes) > _MOST_LINES:
        changes[_MOST_LINES:] = [f"... and {len(changes) - _MOST_LINES} more lines"]
    return "\n".join([f"{title}; the most similar recorded request differs:", *changes, _REMEDY])


def used_up(path: Path, request: RecordedRequest, times: int) -> str:
    """Return the message for a request that came more often than it was recorded."""
    return (
        f"{request.method} {request.path} came {times + 1} times with the same content, but the cassette {path} has "
        f"{times} {'answer' if times == 1 else 'answers'} to it. {_REMEDY}"
    )


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
