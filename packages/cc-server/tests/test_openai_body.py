"""Bodies of OpenAI requests: tools in their plain form, and what the Messages API cannot carry."""

import json
from typing import Any

import pytest

from cc_server.openai_body import parse_body
from cc_types import APIError
from warm_clients.api_data import MODEL

HELLO: Any = [{"role": "user", "content": "Hello."}]
TOOL: Any = {"type": "function", "name": "weather", "description": "W.", "parameters": {"type": "object"}}


def parse(fields: dict[str, Any]) -> dict[str, Any]:
    return parse_body(json.dumps({"model": MODEL, **fields}).encode(), is_chat="messages" in fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"messages": ["Hello."]}, "messages: a list of objects is required"),
        ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "input_audio is not in the"),
        ({"messages": HELLO, "functions": [TOOL]}, "functions: not supported"),
        ({"messages": HELLO, "web_search_options": {}}, "web_search_options: not supported"),
        ({"messages": [*HELLO, {"role": "assistant", "tool_calls": [{"type": "custom"}]}]}, "custom is not in the"),
        ({"messages": HELLO, "n": 2}, "n: the Messages API gives one answer"),
        ({"messages": HELLO, "tools": ["weather"]}, "tools: a list of objects is required"),
        ({"messages": HELLO, "tools": [{"type": "custom"}]}, "only functions are supported"),
        ({"input": [*HELLO, {"type": "additional_tools", "tools": [{"type": "custom"}]}]}, "only functions are"),
        ({"input": [*HELLO, {"type": "item_reference", "id": "msg_1"}]}, "input: item_reference is not in the"),
        ({"input": "Hello.", "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [TOOL]}}, "'weather'"),
        ({"input": "Hello.", "previous_response_id": "resp_1"}, "previous_response_id: not supported"),
        ({"input": [{"content": [{"image_url": "http://10.0.0.1/"}]}]}, "An address begins with https:// or data:"),
    ],
)
def test_a_request_that_messages_cannot_carry_is_refused(fields: dict[str, Any], message: str) -> None:
    """MSG-173."""
    with pytest.raises(APIError, match=message) as caught:
        parse(fields)
    assert caught.value.status == 400


def test_fields_that_name_nothing_are_no_reason() -> None:
    fields: dict[str, Any] = {"input": "Hello.", "previous_response_id": "", "functions": [], "background": False}
    assert parse(fields) == {"model": MODEL, **fields}


@pytest.mark.parametrize("is_chat", [False, True])
def test_only_the_allowed_tools_are_offered(is_chat: bool) -> None:
    """MSG-173."""
    tools, items = [TOOL, {**TOOL, "name": "time"}], {"input": "Hello."}
    choice: dict[str, Any] = {"mode": "required", "tools": [{"type": "function", "name": "weather"}]}
    if is_chat:
        tools = [{"type": "function", "function": tool} for tool in tools]
        items, choice = {"messages": HELLO}, {"allowed_tools": {**choice, "tools": tools[:1]}}
    body = parse({**items, "tools": tools, "tool_choice": {"type": "allowed_tools", **choice}})
    assert (body["tools"], body["tool_choice"]) == (tools[:1], "required")


def test_tools_in_the_input_of_a_response_are_offered() -> None:
    """MSG-173: as Codex sends them, again and again."""
    old, new, other = (
        {**TOOL, "name": name, "description": text} for name, text in (("a", "1"), ("a", "2"), ("b", "3"))
    )
    added = [{"type": "additional_tools", "role": "developer", "tools": [tool]} for tool in (old, new)]
    body = parse({"input": [*added, *HELLO], "tools": [other]})
    assert (body["input"], body["tools"]) == (HELLO, [other, new])
