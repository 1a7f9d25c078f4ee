"""Request headers that are passed on to the API, given to a process by environment variables.

The CLI reads them for each request. Pure functions.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .failure import invalid

__all__ = ["PassedHeaders", "passed_headers"]

# The CLI's variable for headers of its own requests to the API, one per line.
_CUSTOM_HEADERS = "ANTHROPIC_CUSTOM_HEADERS"

# Headers about the client and the connection; the CLI sends its own.
_OF_THE_CLIENT = frozenset(
    {
        "accept",
        "accept-encoding",
        "anthropic-beta",
        "anthropic-version",
        "authorization",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "host",
        "idempotency-key",
        "transfer-encoding",
        "user-agent",
        "x-api-key",
        "x-app",
    }
)
_OF_ITS_LIBRARY = ("x-stainless-", "x-claude-code-", "proxy-", "sec-")

_TRUE = frozenset({"1", "true", "yes", "on"})

# As defined by the W3C's Trace Context.
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_TRACESTATE = re.compile(r"[\x20-\x7e]{0,512}")


@dataclass(frozen=True, slots=True)
class PassedHeaders:
    """Headers that are passed on."""

    custom: tuple[str, ...] = ()
    """Lines for the API."""
    traceparent: str = ""
    """The span of the request; the CLI's own spans become its children."""
    tracestate: str = ""
    always: str = field(default="", compare=False)
    """Lines for every request of the process."""

    @property
    def env(self) -> Mapping[str, str]:
        """The variables with these lines."""
        return {
            _CUSTOM_HEADERS: "\n".join([*([self.always] if self.always else []), *self.custom]),
            "TRACEPARENT": self.traceparent,
            "TRACESTATE": self.tracestate,
        }


def passed_headers(headers: Iterable[tuple[str, str]], env: Mapping[str, str]) -> PassedHeaders:
    """Select the headers of a request that are passed on.

    Args:
        headers: Names and values.
        env: The environment of the processes.

    Raises:
        APIError: A value contains a line break (status 400).
    """
    # If the CLI makes no spans, the trace context has no reader there, and passing it takes a millisecond.
    is_traced = env.get("CLAUDE_CODE_ENABLE_TELEMETRY", "").lower() in _TRUE
    always = env.get(_CUSTOM_HEADERS, "")
    custom: list[str] = []
    trace = {"traceparent": "", "tracestate": ""}
    for name, value in headers:
        name = name.lower()
        if name in trace:
            trace[name] = value if is_traced else ""
        elif name not in _OF_THE_CLIENT and not name.startswith(_OF_ITS_LIBRARY):
            if {"\r", "\n"} & {*value}:
                raise invalid(f"The header {name} has a line break in it")
            custom.append(f"{name}: {value}")
    if _TRACEPARENT.fullmatch(trace["traceparent"]) is None:
        return PassedHeaders(tuple(custom), always=always)
    state = trace["tracestate"] if _TRACESTATE.fullmatch(trace["tracestate"]) else ""
    return PassedHeaders(tuple(custom), trace["traceparent"], state, always)
