"""The CLI log of API calls: response headers, and error bodies word for word.

The messages on the CLI stdout lack data that an API client needs: the wait after a 429, the request id, the API text
for some errors. With debug logging the API client inside the CLI writes them to stderr, keys masked and contents left
out. That costs 0.2 ms a request here, and nothing measurable there. Measured on CLI 2.1.329; a version with another log
format only gives less. Lives on the background loop.

Only calls with the current request number count: lines for an earlier request may come late. The number is set on a
process with the request parameters, as the milliseconds in the API client time limit. The client logs that limit at
each call, so a call with another number was made with another request's parameters; the API gets it in whole seconds.
Measured on CLI 2.1.81 to 2.1.332, with an API key, an OAuth token, Vertex AI and Bedrock.
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import cycle
from typing import TYPE_CHECKING, cast

from ..api.response import HEADER_VALUE

if TYPE_CHECKING:
    from cc_types import JsonValue

LOG_ENV = {"ANTHROPIC_LOG": "debug", "CLAUDE_CODE_DEBUG_LOG_LEVEL": "error", "FORCE_COLOR": "0"}
"""Variables for the start: the CLI API client logs everything, the CLI itself only errors, and no line has colors."""
LOG_ARGUMENTS: Mapping[str, str | None] = {"debug-to-stderr": None}
"""Command-line arguments for it."""

NUMBER_VARIABLE = "API_TIMEOUT_MS"
"""The variable with the time limit up to the response's head. The CLI reads it for each call."""

# As long as the CLI may wait in a stream, so that the client's limits end a request; the CLI's own is ten minutes.
_DEFAULT_MILLISECONDS = 1_800_000
_SECOND = 1000

# The log's usual delay, at most. The lines are written before the CLI message on stdout, into another pipe.
_BEHIND_SECONDS = 0.1

_ENTRY = re.compile(r"\[Anthropic SDK \w+\] (?P<text>.*)")
_SENDING = re.compile(r"\[log_\w+\] sending request \{$")
_ANSWERED = re.compile(r"\[log_\w+\] response (?:start|error \(.*\)) \{$")
_NUMBER = re.compile(r"^    timeout: (\d+),$", re.MULTILINE)
_HEADER = re.compile(r'^    "?([\w-]+)"?: ("(?:[^"\\]|\\.)*"),$', re.MULTILINE)
# From the line beginning: a tool error text, which the CLI logs too, may quote such a line.
_ERROR = re.compile(
    r"[\d-]+T[\d:.]+Z \[ERROR\] "
    r"(?:API error \(attempt \d+/\d+\): (?P<status>\d+)|Error in API request:) (?:\d+ )?(?P<body>\{.*\})$"
)
_AWS_REQUEST_ID = "x-amzn-requestid"
_PASSED_ON = re.compile(
    rf"{_AWS_REQUEST_ID}|request-id|retry-after(-ms)?|x-should-retry|anthropic-(organization-id|ratelimit-.*)"
)

# After these the CLI may retry the request in another form. It may after a 401, too, but with a new login.
_REFUSALS = frozenset({400, 404})


class APILog:
    """Reads a process's stderr, line by line."""

    def __init__(self) -> None:
        self.on_refusal: Callable[[], object] | None = None
        """Called when the API has refused the request, before the CLI tries a different request."""
        self._entry: list[str] = []
        """Title and details of an entry whose end has not come."""
        self._has_call, self._has_answer, self._has_error = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.expect("")

    def expect(self, number: str) -> None:
        """Begin a request, whose API calls have this number."""
        self._expected = number
        self._is_mine = self._is_proven = False
        self.is_mixed: bool = False
        """True if a later call had another number."""
        if self._entry:  # about an earlier request
            self._entry[0] = ""
        self.headers: dict[str, str] = {}
        """Useful headers in the last response."""
        self.error: dict[str, JsonValue] | None = None
        """The API's last error, as in its body, if any."""
        self.status: int | None = None
        """That error's status, if the response had it."""
        for event in (self._has_call, self._has_answer, self._has_error):
            event.clear()

    @property
    def has_answer(self) -> bool:
        """True if the log has a response headers."""
        return self._has_answer.is_set()

    async def called(self, seconds: float) -> bool:
        """Wait up to `seconds` for an API call; return true if there is a call with the request number."""
        await _wait_for(self._has_call, seconds)
        return self._is_proven

    async def answered(self) -> None:
        """Wait for a response headers, up to a time limit."""
        if self._has_call.is_set():
            await _wait_for(self._has_answer, _BEHIND_SECONDS)

    async def failed(self) -> None:
        """Wait likewise for an error body."""
        if self._has_call.is_set():
            await _wait_for(self._has_error, _BEHIND_SECONDS)

    def take(self, line: str) -> None:
        """Read a line."""
        if self._entry and line.startswith((" ", "}")):
            self._entry.append(line)
            if line.startswith("}"):
                title, *details = self._entry
                self._entry = []
                self._take_entry(title, "\n".join(details))
        elif entry := _ENTRY.match(line):
            self._is_mine &= not _SENDING.match(entry["text"])
            self._entry = [entry["text"]] if line[-1] == "{" else []
        else:
            self._entry = []
            self._take_error(line)

    def _take_entry(self, title: str, details: str) -> None:
        if _SENDING.match(title):
            number = _NUMBER.search(details)
            # A log without numbers proves nothing, and is useful all the same.
            self._is_mine = number is None or number[1] == self._expected
            if self._is_mine:
                self._is_proven = number is not None
                self._has_call.set()
            elif self._is_proven:  # and an earlier request's call cannot come after this request's
                self.is_mixed = True
        elif _ANSWERED.match(title) and self._is_mine:
            for name, value in _HEADER.findall(details):
                if _PASSED_ON.fullmatch(name):
                    with suppress(ValueError):
                        if HEADER_VALUE.fullmatch(text := str(json.loads(value))):
                            self.headers["request-id" if name == _AWS_REQUEST_ID else name] = text
            self._has_answer.set()

    def _take_error(self, line: str) -> None:
        entry = _ERROR.match(line)
        if entry is None or not self._is_mine:
            return
        with suppress(ValueError):
            body = cast("dict[str, JsonValue]", json.loads(entry["body"]))
            if not isinstance(error := body.get("error"), dict):
                return
            self.error = error
            self._has_error.set()
            if entry["status"] is not None:
                self.status = int(entry["status"])
                if self.status in _REFUSALS and self.on_refusal is not None:
                    self.on_refusal()


def call_numbers(env: Mapping[str, str]) -> Iterator[str]:
    """Return time limits with a process's numbers, which repeat after a thousand; `env` sets the limit seconds."""
    text = env.get(NUMBER_VARIABLE, "")
    limit = int(text) if text.isdecimal() else _DEFAULT_MILLISECONDS
    seconds = max(limit // _SECOND, 1)
    return (str(seconds * _SECOND + number) for number in cycle(range(_SECOND)))


async def _wait_for(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
