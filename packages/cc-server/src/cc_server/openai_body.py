"""Bodies of OpenAI requests: what the Messages API cannot carry, and tools in their plain form."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from pydantic_core import from_json

from cc_types import APIError

# Fields without which the answer would be another one: what they name is on the OpenAI servers, or not in Messages.
_UNKNOWN_FIELDS = {
    **dict.fromkeys(("audio", "background", "logprobs", "web_search_options"), "Leave it out"),
    **dict.fromkeys(("conversation", "previous_response_id", "prompt"), "Send the whole conversation"),
    "functions": "Use tools",
    "function_call": "Use tool_choice",
}

# Parts of messages, and all items of a response's input but these: LiteLLM would leave them out.
_UNKNOWN_PARTS = frozenset({"audio_url", "custom", "input_audio", "refusal", "video_url"})
_ITEMS = frozenset({
    "custom_tool_call", "custom_tool_call_output", "function_call", "function_call_output", "message", "reasoning",
})  # fmt: skip

_ADDRESSES = frozenset({"file_url", "image_url", "url"})


def parse_body(content: bytes, *, is_chat: bool) -> dict[str, Any]:
    """Return the body that `content` has, with fields that LiteLLM can translate.

    Raises:
        APIError: The Messages API cannot carry the request (400).
    """
    try:
        value = from_json(content)
    except ValueError as error:
        raise _bad_request(f"The body is not valid JSON: {error}") from error
    body = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    if not isinstance(body.get("model"), str):
        raise _bad_request("model: a text is required")
    for name, advice in _UNKNOWN_FIELDS.items():
        if body.get(name) not in (None, False, "", []):  # an empty object may ask for all defaults
            raise _bad_request(f"{name}: not supported, since it is not in the Messages API. {advice}")
    if body.get("n") not in (None, 1):
        raise _bad_request("n: the Messages API gives one answer")
    if is_chat or not isinstance(body.get("input"), str):
        body = _with_plain_items(body, "messages" if is_chat else "input")
    tools = _objects_in(body, "tools") if body.get("tools") else []
    if None in map(_function_name, tools):
        raise _bad_request("tools: only functions are supported")
    return _with_allowed_tools(body, tools)


def _with_plain_items(body: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a body whose items are messages, calls and results: tools among them are in `tools`."""
    items = _objects_in(body, name)
    others = [item for item in items if item.get("type") != "additional_tools"]
    for item in others:
        if (kind := str(item.get("type") or "message")) not in _ITEMS:
            raise _bad_request(f"{name}: {kind} is not in the Messages API")
    for part in _nested_objects(others):
        if isinstance(kind := part.get("type"), str) and kind in _UNKNOWN_PARTS:
            raise _bad_request(f"{name}: {kind} is not in the Messages API")
        for field in _ADDRESSES & part.keys():
            address = part[field]
            if isinstance(address, str) and not address.startswith(("data:", "https://")):
                raise _bad_request(f"An address begins with https:// or data:, not {address[:20]!r}")
    if len(others) == len(items):
        return body
    groups = [_objects_in(item, "tools") for item in (body, *items) if item.get("tools")]
    # The newest of each name: Codex sends its tools again with each turn.
    tools = {_function_name(tool): tool for group in groups for tool in group}
    return {**body, name: others, "tools": [*tools.values()]}


def _with_allowed_tools(body: dict[str, Any], tools: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a body that offers only the tools that its `tool_choice` allows."""
    match body.get("tool_choice"):
        case {"type": "allowed_tools", "allowed_tools": {**choice}} | {"type": "allowed_tools", **choice}:
            names = {_function_name(tool) for tool in _objects_in(choice, "tools")}
        case _:
            return body
    if unknown := names - {*map(_function_name, tools)}:
        raise _bad_request(f"tool_choice: no function has the name {unknown.pop()!r}")
    if (mode := choice.get("mode")) not in ("auto", "required"):
        raise _bad_request(f"tool_choice: the mode is 'auto' or 'required', not {mode!r}")
    return {**body, "tools": [tool for tool in tools if _function_name(tool) in names], "tool_choice": mode}


def _function_name(tool: dict[str, Any]) -> str | None:
    """Return a function's name in either protocol; None for another tool."""
    match tool:
        case {"type": "function", "function": {"name": str(name)}} | {"type": "function", "name": str(name)}:
            return name
        case _:
            return None


def _objects_in(body: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    value: Any = body.get(name)
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in cast("list[object]", value)):
        raise _bad_request(f"{name}: a list of objects is required")
    return cast("list[dict[str, Any]]", value)


def _nested_objects(value: object) -> Iterator[dict[str, Any]]:
    """Yield the objects in a JSON value."""
    if isinstance(value, list):
        for item in cast("list[object]", value):
            yield from _nested_objects(item)
    elif isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        yield fields
        for item in fields.values():
            yield from _nested_objects(item)


def _bad_request(message: str) -> APIError:
    return APIError(status=400, message=message)
