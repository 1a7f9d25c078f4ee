"""From the body of `POST /v1/messages` to what a process is asked: launch key, parameters, conversation.

Pure functions. What the CLI fixes when it starts goes into the launch key; what it takes per request stays as it is,
in the parameters; what it cannot carry is refused here, with the API's own kind of error, and never dropped. Cache
breakpoints are the exception: the CLI places its own, and the API allows four.
"""

import json
import math
from dataclasses import dataclass, field
from typing import TypeAlias

from cc_types import JsonValue

from .carried import check_block, check_conversation
from .cli_tools import Beside
from .conversation import Message, as_blocks, merged, without_cache_control
from .failure import DetailedError, invalid
from .loop_answer import unfolded
from .loop_request import loop_parameters, tool_server_key, with_cli_names
from .own_tools import OwnTools
from .passed_headers import PassedHeaders
from .tool_server import ToolServerKey
from .verbatim import PROMPT, as_parameter, obstacle

__all__ = ["LaunchKey", "MessagesRequest", "parse_object", "parse_request"]

_Object: TypeAlias = dict[str, JsonValue]

# The rest of the body reaches the API as the caller wrote it, through the CLI's extra-body hook.
_NOT_PARAMETERS = frozenset({"betas", "cache_control", "messages", "model", "stream", "system"})
# How the CLI says for whom an API call is made. One that is a client of ours says it, too, and the process that really
# makes the call replaces it by its own.
_BILLING_HEADER = "x-anthropic-billing-header:"
_ROLES = frozenset({"assistant", "system", "user"})
_MESSAGE_FIELDS = frozenset({"content", "role"})
# Without content it changes the effort from there on.
_SYSTEM_MESSAGE_FIELDS = frozenset({"content", "output_config", "role"})
_SYSTEM_FIELDS = frozenset({"cache_control", "text", "type"})


@dataclass(frozen=True, slots=True)
class LaunchKey:
    """What a process fixes when it starts. Requests with equal keys can share one."""

    model: str
    system: str
    betas: tuple[str, ...]
    tool_server: ToolServerKey | None = None
    """The tools of the requests that the CLI knows; None where it knows none of them."""
    own: OwnTools | None = None
    """The tools of its own; None where it has none."""

    @property
    def has_loop(self) -> bool:
        """Whether the CLI calls tools and asks the API again by itself; if not, it makes one API call for a request."""
        return self.tool_server is not None or self.own is not None


@dataclass(frozen=True, slots=True)
class MessagesRequest:
    """One request: the conversation ends in the user message that is to be answered."""

    launch: LaunchKey
    parameters: str
    """The rest of the body, as JSON; equal texts mean equal parameters."""
    messages: tuple[Message, ...]
    stream: bool
    is_verbatim: bool = False
    """Whether the conversation stands in the parameters, and the message here is one that the API never gets."""
    beside: Beside | None = field(default=None, compare=False)
    """What the caller has said beside the body."""
    headers: PassedHeaders = field(default_factory=PassedHeaders, compare=False)
    """What goes to the API beside the body."""


def parse_request(
    body: bytes, betas: str = "", beside: Beside | None = None, headers: PassedHeaders | None = None
) -> MessagesRequest:
    """Read a request.

    Args:
        body: The HTTP body.
        betas: The value of the `anthropic-beta` header.
        beside: What the caller has said beside the body.
        headers: What goes to the API beside the body.

    Raises:
        APIError: The body is not what the Messages API takes (status 400), or says what the CLI cannot carry.
    """
    try:
        fields = parse_object(body)
        _refuse_thread(fields)
        server = tool_server_key(fields, beside)
        own = beside.own if beside is not None else None
        launch = LaunchKey(
            model=_model(fields),
            system=_system(fields.get("system")),
            betas=_betas(fields.get("betas"), betas),
            tool_server=server,
            own=own,
        )
        parameters = _parameters(fields)
        messages = _messages(fields.get("messages"), server)
        if reason := obstacle(messages):
            if launch.has_loop:  # which the CLI goes on with from its history
                raise invalid(reason)
            parameters["messages"], messages = as_parameter(messages), (PROMPT,)
        return MessagesRequest(
            launch=launch,
            parameters=json.dumps(loop_parameters(parameters, server, own), sort_keys=True),
            messages=messages,
            stream=_stream(fields),
            is_verbatim=reason is not None,
            beside=beside,
            headers=headers or PassedHeaders(),
        )
    except RecursionError as error:
        raise invalid("The request body is nested too deeply") from error


def parse_object(body: bytes) -> _Object:
    """Read the JSON object that a body has to be.

    Raises:
        APIError: It is none (status 400).
    """
    try:
        fields: JsonValue = json.loads(body, parse_float=_finite, parse_constant=_finite)
        if rb"\ud" in body.lower():
            # Half a surrogate pair is accepted by `json`, and can be written nowhere.
            json.dumps(fields, ensure_ascii=False).encode()
    except ValueError as error:
        raise invalid(f"The request body is not valid JSON: {error}") from error
    except RecursionError as error:
        raise invalid("The request body is nested too deeply") from error
    if not isinstance(fields, dict):
        raise invalid("The request body must be a JSON object")
    return fields


def _refuse_thread(fields: _Object) -> None:
    # On a thread the API takes no system prompt and no tools, which the CLI sends with every request. Clients that
    # would only have liked a thread know this error, and send the whole history.
    if fields.get("thread") is not None:
        message = "thread: Claude Code sends the whole history with each request, so there are no threads"
        details: JsonValue = {"error_code": "thread_unsupported_request", "unsupported": ["claude_code"]}
        error: _Object = {"type": "invalid_request_error", "message": message, "details": details}
        raise DetailedError(status=400, error=error)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a number that JSON has")
    return number


def _model(fields: _Object) -> str:
    model = fields.get("model")
    # It stands on a command line, which cannot hold a null character.
    if not isinstance(model, str) or not model or "\0" in model:
        raise invalid("model: a non-empty string is required")
    return model


def _stream(fields: _Object) -> bool:
    stream = fields.get("stream")
    if stream is not None and not isinstance(stream, bool):
        raise invalid("stream: a boolean is required")
    return stream is True


def _system(system: JsonValue) -> str:
    """The system prompt as one text. The CLI takes one, so several blocks become its paragraphs."""
    if system is None:
        return ""
    texts: list[str] = []
    blocks = as_blocks(system, "system") if system != "" else ()
    for index, block in enumerate(blocks):
        text = block.get("text")
        if block.get("type") != "text" or not isinstance(text, str):
            raise invalid(f"system.{index}: only text blocks are allowed")
        _only(block, _SYSTEM_FIELDS, f"system.{index}")
        if not text.startswith(_BILLING_HEADER):
            texts.append(text)
    return "\n\n".join(texts)


def _betas(field: JsonValue, header: str) -> tuple[str, ...]:
    """The beta features that are asked for; clients send them in the header, and some APIs take them in the body."""
    names = [name.strip() for name in header.split(",")]
    if field is not None:
        if not isinstance(field, list) or not all(isinstance(name, str) for name in field):
            raise invalid("betas: a list of strings is required")
        names += [str(name) for name in field]
    return tuple(sorted({*names} - {""}))


def _parameters(fields: _Object) -> _Object:
    parameters: _Object = {
        name: value for name, value in fields.items() if name not in _NOT_PARAMETERS and value is not None
    }
    max_tokens = parameters.get("max_tokens")
    if not isinstance(max_tokens, int) or isinstance(max_tokens, bool):
        raise invalid("max_tokens: an integer is required")
    tools = parameters.get("tools")
    if isinstance(tools, list):
        parameters["tools"] = [_tool(tool, f"tools.{index}") for index, tool in enumerate(tools)]
    return parameters


def _tool(tool: JsonValue, place: str) -> JsonValue:
    if not isinstance(tool, dict):
        raise invalid(f"{place}: an object is required")
    return without_cache_control(tool)


def _messages(messages: JsonValue, server: ToolServerKey | None) -> tuple[Message, ...]:
    if not isinstance(messages, list) or not messages:
        raise invalid("messages: at least one message is required")
    read = [_message(message, f"messages.{index}") for index, message in enumerate(messages)]
    flat = [part for message in read for part in unfolded(message)]
    parsed = merged(with_cli_names(flat, server) if server is not None else flat)
    check_conversation(merged(message for message in parsed if message.role != "system"))
    return parsed


def _message(message: JsonValue, place: str) -> Message:
    if not isinstance(message, dict):
        raise invalid(f"{place}: an object is required")
    role = message.get("role")
    if role not in _ROLES:
        raise invalid(f"{place}.role: must be 'user', 'assistant' or 'system', not {role!r}")
    _only(message, _SYSTEM_MESSAGE_FIELDS if role == "system" else _MESSAGE_FIELDS, place)
    blocks = as_blocks(message.get("content"), f"{place}.content")
    settings = message.get("output_config")
    if not blocks and settings is None:
        raise invalid(f"{place}.content: must not be empty")
    for index, block in enumerate(blocks):
        check_block(str(role), block, f"{place}.content.{index}")
    return Message(str(role), blocks, settings)


def _only(fields: _Object, known: frozenset[str], place: str) -> None:
    for name, value in fields.items():
        if name not in known and value is not None:
            raise invalid(f"{place}.{name}: Claude Code does not carry this field")
