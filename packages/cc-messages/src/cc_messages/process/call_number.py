"""The number of an API call: the proof that Claude Code made it with its request's parameters.

A request's parameters are set on a process before its prompt, and a number with them: the milliseconds in the time
limit of the API client inside the CLI. The API gets that limit in whole seconds, so it never sees the number. But the
client writes the limit into its log at each call (see `api_log.py`). So a call with another number was made with
another request's parameters. Measured on CLI 2.1.81 to 2.1.330, with an API key, an OAuth token, Vertex AI and Bedrock.
"""

from collections.abc import Mapping

__all__ = ["NUMBER_VARIABLE", "CallNumbers"]

NUMBER_VARIABLE = "API_TIMEOUT_MS"
"""The variable with the time limit. The CLI reads it for each call."""

# The CLI's own limit.
_DEFAULT_MILLISECONDS = 600_000

_SECOND = 1000


class CallNumbers:
    """A process's numbers, which repeat after a thousand.

    Args:
        env: The process's environment; its time limit holds, but for the milliseconds.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        text = env.get(NUMBER_VARIABLE, "")
        limit = int(text) if text.isdecimal() else _DEFAULT_MILLISECONDS
        self._limit = max(limit // _SECOND, 1) * _SECOND
        self._count = 0

    @property
    def current(self) -> str:
        """The time limit with the current number."""
        return str(self._limit + self._count)

    def advance(self) -> None:
        """Go on to the next number."""
        self._count = (self._count + 1) % _SECOND
