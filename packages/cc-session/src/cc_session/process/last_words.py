"""End of a process's stderr without logs, for the error that reports the process's end.

With debug logging the CLI writes two logs to stderr: the CLI's, and the log of the API client inside it, with the
headers of each request. They do not explain an end, and a header can hold a secret. Measured on CLI 2.1.329.
"""

import re
from collections import deque

__all__ = ["LastWords"]

_LOG_ENTRY = re.compile(r"\[Anthropic SDK \w+\] |\d{4}-\d\d-\d\dT[\d:.]+Z \[[A-Z]+\] ")
# An entry with an object continues on indented lines, up to a brace.
_CONTINUATION = (" ", "\t", "}")

# A CLI that fails can print kilobytes of source code; the last lines say why.
_LINES = 40


class LastWords:
    """Last stderr lines that are not a log, since the last `forget()`."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=_LINES)
        self._is_in_log = False

    def take(self, line: str) -> None:
        """Read a line."""
        self._is_in_log = _LOG_ENTRY.match(line) is not None or (self._is_in_log and line.startswith(_CONTINUATION))
        if not self._is_in_log:
            self._lines.append(line)

    def forget(self) -> None:
        """Drop the lines so far, which belong to an earlier request."""
        self._lines.clear()

    def __str__(self) -> str:
        return "\n".join([*self._lines])
