"""A request to `POST /v1/messages`, as input for a process: body and headers. Pure functions.

The body goes to the API unchanged, through the CLI extra body: so the API itself refuses invalid requests, in its own
words. The body is read only as far as necessary: the CLI would fill in a missing field.

Headers go to the API by variables that the CLI reads for each request. It splits them into lines and trims each part,
so a name or a value that HTTP does not allow could bring another header.
"""

import asyncio
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar, cast

from cc_session.internals import Login
from cc_types import APIError, JsonValue

from ..context import RequestContext
from .breakpoints import with_breakpoints
from .folding import unfolded_messages
from .response import HEADER_VALUE, invalid

T = TypeVar("T")
_Object: TypeAlias = dict[str, JsonValue]

# Model names that can be in the body. The CLI makes an id from any other, so it is set on the process.
_MODEL_IDS = dict.fromkeys(
    (Login.API_KEY, Login.GATEWAY, Login.SUBSCRIPTION, Login.FOUNDRY, Login.VERTEX), re.compile(r"claude-[\w.@-]+")
) | {Login.BEDROCK: re.compile(r"([a-z-]+\.)?anthropic\..+|arn:.+")}
PLAIN_MODEL = "claude-sonnet-5"
"""The process model if the body sets it. With some others the CLI adds parameters, such as a temperature; with this
one it adds none. Measured on CLI 2.1.139 and newer."""

# The body field for a request betas. The CLI sends it where the API expects it: as a header, in place of the CLI's
# own, or in the body. With other logins, whose betas are a part of the login, a process is started with them.
_BETAS = dict.fromkeys((Login.API_KEY, Login.GATEWAY, Login.FOUNDRY, Login.VERTEX), "betas") | {
    Login.BEDROCK: "anthropic_beta"
}
# The CLI line about the API client. A CLI that is our client sends it, too, and the process that makes the API call
# sends it again.
_BILLING_HEADER = "x-anthropic-billing-header:"

# Parsing takes some 10 ms for a megabyte, and up to ten times as long if it has very many values.
_LONG_BYTES = 100_000

# The API limit for names; a start with a longer one would fail, and clients would retry.
_MODEL_CHARACTERS = 256

# The CLI variable for headers in its API requests, a line for each.
_CUSTOM_HEADERS = "ANTHROPIC_CUSTOM_HEADERS"

# CLI 2.1.329 sends at most 253 headers, with up to 24 from the CLI itself. It leaves out the others without an error,
# and the login can be among them. Their length has no such limit: 10 MB arrived.
_MOST_HEADERS = 200

# A token of RFC 9110, section 5.6.2.
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagesRequest:
    """A request to the Messages API."""

    model: str
    """Model id or alias."""
    stream: bool
    context: RequestContext | None
    extra_body: str = ""
    """Fields that replace the CLI conversation and parameters, as a JSON object."""
    system: tuple[str, ...] = ()
    """System prompt, if the CLI has to send it."""
    process_model: str = ""
    betas: str = ""
    """Value of the `anthropic-beta` header, if a process has to be started with it."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables with other headers for the API."""

    @property
    def env(self) -> dict[str, str]:
        """Variables that pass the request to a running process."""
        return {"CLAUDE_CODE_EXTRA_BODY": self.extra_body, **self.headers}


async def run_on_body(function: Callable[[bytes], T], body: bytes) -> T:
    """Return the result of a pure function for a body, in a thread if the body is long: other requests go on."""
    return function(body) if len(body) < _LONG_BYTES else await asyncio.to_thread(function, body)


def request_head(
    fields: _Object, betas: str, headers: Mapping[str, str], context: RequestContext | None
) -> MessagesRequest:
    """Refuse, as the API would, a body without a field that the CLI would fill in, or with one that it fails on.

    Return the request without the body's other fields.
    """
    # On a thread the API refuses system prompts and tools, which the CLI sends with every request. Clients for which a
    # thread is optional know this error, and send the whole history.
    if fields.get("thread") is not None:
        message = "thread: Claude Code sends the whole history with each request, so there are no threads"
        details: JsonValue = {"error_code": "thread_unsupported_request", "unsupported": ["claude_code"]}
        raise APIError(status=400, error_type="invalid_request_error", message=message, details={"details": details})
    if not isinstance(messages := fields.get("messages"), list):
        raise invalid("messages: Field required" if messages is None else "messages: Input should be a valid list")
    if not messages:
        raise invalid("messages: at least one message is required")
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            raise invalid(f"messages.{index}: Input should be an object")
    for name in {"betas", "user_profile_id", "workspace_id"} & fields.keys():  # the CLI would make headers of them
        raise invalid(f"{name}: Extra inputs are not permitted")
    if fields.get("mcp_servers"):  # the CLI cannot read the pieces of an `mcp_tool_use` block input
        raise invalid("mcp_servers: Claude Code cannot read remote MCP calls; use ClaudeCodeTools(mcp_servers=…)")
    if not isinstance(fields.get("tools"), list | None):
        raise invalid("tools: Input should be a valid list")
    if fields.get("max_tokens") is None:
        raise invalid("max_tokens: Field required")
    model, stream = fields.get("model"), fields.get("stream")
    # The model can become a command-line argument, which cannot contain a null character.
    if not isinstance(model, str) or not model or "\0" in model:
        raise invalid("model: a non-empty string is required")
    if len(model) > _MODEL_CHARACTERS:
        raise invalid(f"model: at most {_MODEL_CHARACTERS} characters are allowed, and it has {len(model):,}")
    if not isinstance(stream, bool | None):
        raise invalid("stream: a boolean is required")
    return MessagesRequest(model=model, stream=stream is True, headers=headers, betas=betas, context=context)


def whole_request(fields: _Object, head: MessagesRequest, login: Login, *, places_breakpoints: bool) -> MessagesRequest:
    """Return the request whose body goes to the API as a whole, with breakpoints if it has none and should get some."""
    process_model, betas, texts = head.model, head.betas, ()
    extra = {name: value for name, value in fields.items() if name not in ("model", "stream")}
    if not login.owns_prompt:
        texts = system_texts(extra.pop("system", None))
    elif extra.get("system") in (None, ""):
        extra["system"] = []  # in place of the CLI blocks
    if places_breakpoints:  # except in the CLI system blocks, which have theirs
        extra = with_breakpoints(extra, at_prompt=login.owns_prompt)
    extra["messages"] = unfolded_messages(cast("list[JsonValue]", extra["messages"]))
    if login in _MODEL_IDS and _MODEL_IDS[login].fullmatch(process_model):
        extra["model"], process_model = process_model, PLAIN_MODEL
    if login in _BETAS:
        names: list[JsonValue] = [beta.strip() for beta in betas.split(",") if beta.strip()]
        # Null removes the header with the CLI betas; the API refuses an empty one.
        extra["betas"] = None
        if names:
            extra[_BETAS[login]] = names
        betas = ""
    return replace(head, process_model=process_model, extra_body=json.dumps(extra), system=texts, betas=betas)


def parse_object(body: bytes) -> _Object:
    """Parse a body as a JSON object."""
    try:
        # `json` would also accept bytes for half a surrogate pair, and other encodings.
        fields: JsonValue = json.loads(body.decode("utf-8-sig"), parse_float=_finite, parse_constant=_finite)
        if rb"\ud" in body.lower():
            # `json` accepts half a surrogate pair, but no encoder can write it.
            json.dumps(fields, ensure_ascii=False).encode()
    except ValueError as error:
        raise invalid(f"The request body is not valid JSON: {error}") from error
    except RecursionError as error:
        raise invalid("The request body is nested too deeply") from error
    if not isinstance(fields, dict):
        raise invalid("The request body must be a JSON object")
    return fields


def check_headers(headers: Iterable[tuple[str, str]]) -> None:
    """Check the names and values of a request's headers, also of headers that are not passed on."""
    for name, value in headers:
        if _NAME.fullmatch(name) is None:
            raise invalid(
                f"{name[:_SHOWN_CHARACTERS]!r} cannot be a header name: names have letters, digits and "
                "characters of !#$%&'*+-.^_`|~ (RFC 9110, section 5.6.2)"
            )
        if HEADER_VALUE.fullmatch(value) is None:
            raise invalid(
                f"The value of the header {name[:_SHOWN_CHARACTERS]} has a control character, or one outside "
                "ISO 8859-1: encode it"
            )


def headers_env(headers: Iterable[tuple[str, str]], env: Mapping[str, str]) -> Mapping[str, str]:
    """Return the variables that pass checked request headers to the API, in processes with the environment `env`."""
    # If the CLI makes no spans, the trace context has no reader there, and passing it takes a millisecond.
    is_traced = env.get("CLAUDE_CODE_ENABLE_TELEMETRY", "").lower() in _TRUE
    lines = always.split("\n") if (always := env.get(_CUSTOM_HEADERS)) else []
    trace = {"traceparent": "", "tracestate": ""}
    for name, value in headers:
        name = name.lower()
        if name in trace:
            trace[name] = value if is_traced else ""
        elif name not in _OF_THE_CLIENT and not name.startswith(_OF_ITS_LIBRARY):
            lines.append(f"{name}: {value}")
    if len(lines) > _MOST_HEADERS:
        raise invalid(
            f"Claude Code passes on at most {_MOST_HEADERS} headers, and there are {len(lines)}, "
            f"with those of {_CUSTOM_HEADERS}"
        )
    parent = trace["traceparent"] if _TRACEPARENT.fullmatch(trace["traceparent"]) else ""
    state = trace["tracestate"] if parent and _TRACESTATE.fullmatch(trace["tracestate"]) else ""
    return {_CUSTOM_HEADERS: "\n".join(lines), "TRACEPARENT": parent, "TRACESTATE": state}


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a number that JSON has")
    return number


def system_texts(system: JsonValue) -> tuple[str, ...]:
    """Return a system prompt's blocks that the CLI sends."""
    if system is None or system == "":
        return ()
    blocks = [{"type": "text", "text": system}] if isinstance(system, str) else system
    if not isinstance(blocks, list):
        raise invalid("system: a string or a list of text blocks is required")
    texts: list[str] = []
    for index, block in enumerate(blocks):
        text = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None
        if not isinstance(text, str):
            raise invalid(f"system.{index}: only text blocks are allowed")
        texts.append(text)
    return tuple(text for text in texts if not text.startswith(_BILLING_HEADER))
