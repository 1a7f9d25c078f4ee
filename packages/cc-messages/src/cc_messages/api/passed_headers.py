"""Request headers: checked, and those for the API given to a process by environment variables.

The CLI reads the variables for each request. It splits them into lines and trims each part, so a name or a value that
HTTP does not allow could bring another header. Pure functions.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .failure import invalid

__all__ = ["PassedHeaders", "check_headers", "passed_headers"]

# The CLI's variable for headers in its API requests, a line for each.
_CUSTOM_HEADERS = "ANTHROPIC_CUSTOM_HEADERS"

# CLI 2.1.329 sends at most 253 headers, with up to 24 from the CLI itself. It leaves out the others without an error,
# and the login can be among them. Their length has no such limit: 10 MB arrived.
_MOST_HEADERS = 200

# A token of RFC 9110, section 5.6.2.
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
# A field value of RFC 9110, section 5.5. The CLI sends it in ISO 8859-1, and refuses other characters.
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_SHOWN_CHARACTERS = 100

# Headers about the client and the connection; the CLI sends its own.
_OF_THE_CLIENT = frozenset({
    "accept", "accept-encoding", "anthropic-beta", "anthropic-dangerous-direct-browser-access",
    "authorization", "connection", "content-encoding", "content-length", "content-type", "cookie", "host",
    "idempotency-key", "transfer-encoding", "user-agent", "x-api-key", "x-app",
})  # fmt: skip
# On AWS, headers that begin with x-amz- are a part of the login.
_OF_ITS_LIBRARY = ("x-stainless-", "x-claude-code-", "x-amz-", "proxy-", "sec-")

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
    """The request's span; the CLI's own spans become children."""
    tracestate: str = ""
    always: str = field(default="", compare=False)
    """Lines for the process's every request."""

    @property
    def env(self) -> Mapping[str, str]:
        """The variables with these lines."""
        return {
            _CUSTOM_HEADERS: "\n".join([*([self.always] if self.always else []), *self.custom]),
            "TRACEPARENT": self.traceparent,
            "TRACESTATE": self.tracestate,
        }


def check_headers(headers: Iterable[tuple[str, str]]) -> None:
    """Check a request's headers, also headers that are not passed on.

    Args:
        headers: Names and values.
    """
    for name, value in headers:
        if _NAME.fullmatch(name) is None:
            raise invalid(
                f"{name[:_SHOWN_CHARACTERS]!r} cannot be a header name: names have letters, digits and "
                "characters of !#$%&'*+-.^_`|~ (RFC 9110, section 5.6.2)"
            )
        if _VALUE.fullmatch(value) is None:
            raise invalid(
                f"The value of the header {name[:_SHOWN_CHARACTERS]} has a control character, or one outside "
                "ISO 8859-1: encode it"
            )


def passed_headers(headers: Iterable[tuple[str, str]], env: Mapping[str, str]) -> PassedHeaders:
    """Select a request's headers for the API.

    Args:
        headers: Names and values, checked by `check_headers()`.
        env: The processes' environment.
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
            custom.append(f"{name}: {value}")
    if (count := len(custom) + len(always.splitlines())) > _MOST_HEADERS:
        raise invalid(
            f"Claude Code passes on at most {_MOST_HEADERS} headers, and there are {count}, "
            f"with those of {_CUSTOM_HEADERS}"
        )
    if _TRACEPARENT.fullmatch(trace["traceparent"]) is None:
        return PassedHeaders(tuple(custom), always=always)
    state = trace["tracestate"] if _TRACESTATE.fullmatch(trace["tracestate"]) else ""
    return PassedHeaders(tuple(custom), trace["traceparent"], state, always)
