"""The CLI's log of its API calls: the headers of a response, and the body of an error, word for word.

The messages on the CLI's stdout lack data that an API client needs: the wait after a 429, the id of a request, the
API's own text for some errors. With debug logging the API client inside the CLI writes them to stderr, keys masked and
contents left out. That costs 0.2 ms a request here, and nothing measurable there. Measured on CLI 2.1.329; a version
with another log format only gives less. Lives on the background loop.
"""

import asyncio
import json
import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from cc_types import JsonValue

__all__ = ["LOG_ARGUMENTS", "LOG_ENV", "APILog", "retry_after"]

LOG_ENV = {"ANTHROPIC_LOG": "debug", "CLAUDE_CODE_DEBUG_LOG_LEVEL": "error"}
"""Environment variables for the start: its API client logs everything, and it itself only errors."""
LOG_ARGUMENTS: Mapping[str, str | None] = {"debug-to-stderr": None}
"""Command-line arguments for it."""

# These lines are written before the CLI's message on stdout; they come through another pipe.
_BEHIND_SECONDS = 0.1

_ENTRY = re.compile(r"\[Anthropic SDK \w+\] (?P<text>.*)")
_SENDING = re.compile(r"\[log_\w+\] sending request \{$")
_ANSWERED = re.compile(r"\[log_\w+\] response (?:start|error \(.*\)) \{$")
_HEADER = re.compile(r'    "?(?P<name>[\w-]+)"?: (?P<value>"(?:[^"\\]|\\.)*"),$')
_ERROR = re.compile(
    r"\[ERROR\] (?:API error \(attempt \d+/\d+\): (?P<status>\d+)|Error in API request:) (?:\d+ )?(?P<body>\{.*\})$"
)
_PASSED_ON = re.compile(r"request-id|retry-after(-ms)?|x-should-retry|anthropic-ratelimit-.*")

# After these the CLI may retry the request in another form. It may after a 401, too, but with a new login.
_REFUSALS = frozenset({400, 404})


class APILog:
    """Reads a process's stderr, line by line."""

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}
        """Useful headers of the last response; empty after `forget()`."""
        self.error: dict[str, JsonValue] | None = None
        """The API's last error, as in its body; None after `forget()`."""
        self.status: int | None = None
        """The status of that error, if the response had it."""
        self.on_refusal: Callable[[], object] | None = None
        """Called when the API has refused the request, before the CLI's attempt at a different one."""
        self._is_in_entry = self._is_in_answer = False
        self._is_sending = False
        self._has_answer = asyncio.Event()
        self._has_error = asyncio.Event()

    @property
    def request_id(self) -> str | None:
        """The API's id of the request, if known."""
        return self.headers.get("request-id")

    @property
    def retry_after(self) -> float | None:
        """Seconds to wait before a retry, set by the API."""
        return retry_after(self.headers)

    def forget(self) -> None:
        """Reset the data, which belongs to an earlier request."""
        self.headers, self.error, self.status, self._is_sending = {}, None, None, False
        self._has_answer.clear()
        self._has_error.clear()

    async def answered(self) -> None:
        """Wait for the headers of a response that is known to exist, up to a time limit."""
        if self._is_sending:
            await _wait_for(self._has_answer)

    async def failed(self) -> None:
        """Wait likewise for the body of an error."""
        if self._is_sending:
            await _wait_for(self._has_error)

    def take(self, line: str) -> None:
        """Read a line."""
        if self._is_in_entry and line.startswith((" ", "}")):
            self._take_detail(line)
        elif entry := _ENTRY.match(line):
            self._is_in_entry = line.endswith("{")
            self._is_in_answer = _ANSWERED.match(entry["text"]) is not None
            self._is_sending = self._is_sending or _SENDING.match(entry["text"]) is not None
        else:
            self._is_in_entry = False
            self._take_error(line)

    def _take_detail(self, line: str) -> None:
        if line.startswith("}"):
            if self._is_in_answer:
                self._has_answer.set()
            self._is_in_entry = self._is_in_answer = False
        elif self._is_in_answer and (header := _HEADER.match(line)) and _PASSED_ON.fullmatch(header["name"]):
            with suppress(ValueError):
                self.headers[header["name"]] = str(json.loads(header["value"]))

    def _take_error(self, line: str) -> None:
        found = _ERROR.search(line)
        if found is None:
            return
        with suppress(ValueError):
            body = cast("dict[str, JsonValue]", json.loads(found["body"]))
            if not isinstance(error := body.get("error"), dict):
                return
            self.error = error
            self._has_error.set()
            if found["status"] is not None:
                self.status = int(found["status"])
                if self.status in _REFUSALS and self.on_refusal is not None:
                    self.on_refusal()


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the wait in seconds that a response sets; None without one, or if its form is unknown."""
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "")
    if (seconds := _number(value)) is not None:
        return seconds
    with suppress(ValueError, TypeError):
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    return None


def _number(text: str | None) -> float | None:
    with suppress(ValueError):
        number = float(text or "")
        return number if math.isfinite(number) and number >= 0 else None
    return None


async def _wait_for(event: asyncio.Event) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(_BEHIND_SECONDS):
            await event.wait()
