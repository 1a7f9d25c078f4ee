"""Parsing of requests and responses."""

from typing import get_type_hints

import pytest

from cc_ipc import IPCToolExecutionError, messages
from cc_ipc.errors import InvalidRequestError, UnknownMethodError
from cc_ipc.messages import error_response, parse_request, parse_response
from cc_types import JsonValue


@pytest.mark.parametrize(
    ("more", "taken"),
    [({}, {}), ({"tool_use_id": "toolu_1", "later": [1]}, {"tool_use_id": "toolu_1"}), ({"tool_use_id": 7}, {})],
    ids=["no id", "an id", "nonsense"],
)
def test_a_request_has_a_tool_arguments_and_an_optional_id(
    more: dict[str, JsonValue], taken: dict[str, JsonValue]
) -> None:
    """IPC-D-05, IPC-D-06, IPC-P-10, IPC-P-20: fields that a peer does not know are ignored."""
    params: dict[str, JsonValue] = {"name": "weather", "arguments": {"city": "Bern"}}
    assert parse_request({"method": "call_tool", "params": {**params, **more}, "version": 2}) == {**params, **taken}


def test_another_method_is_unknown() -> None:
    """IPC-P-E04; IPC-D-14: `tools/list` never becomes a request, so `call_tool` is the only method."""
    with pytest.raises(UnknownMethodError) as caught:
        parse_request({"method": "list_tools", "params": {}})
    assert caught.value.method == "list_tools"


@pytest.mark.parametrize(
    "message",
    [
        None,
        [],
        {},
        {"method": 1},
        {"method": "call_tool"},
        {"method": "call_tool", "params": []},
        {"method": "call_tool", "params": {"arguments": {}}},
        {"method": "call_tool", "params": {"name": "a"}},
        {"method": "call_tool", "params": {"name": "a", "arguments": []}},
    ],
)
def test_an_invalid_request_is_refused(message: JsonValue) -> None:
    with pytest.raises(InvalidRequestError):
        parse_request(message)


def test_a_result_is_returned_with_all_of_its_fields() -> None:
    """IPC-D-07, IPC-D-08, IPC-P-11, IPC-D-17."""
    content: JsonValue = [{"type": "text", "text": "a"}]
    result: JsonValue = {"content": content, "isError": True, "structuredContent": {"a": 1}, "_meta": {}}
    assert parse_response({"result": result}, tool="t") == result


def test_an_error_is_raised_with_class_and_message() -> None:
    """IPC-D-11, IPC-D-12, IPC-P-12."""
    response: JsonValue = {"error": {"message": "no such city", "type": "ValueError"}}
    assert error_response("ValueError", "no such city") == response
    with pytest.raises(IPCToolExecutionError) as caught:
        parse_response(response, tool="weather")
    assert vars(caught.value) == {"tool": "weather", "error_type": "ValueError", "message": "no such city"}
    with pytest.raises(IPCToolExecutionError, match="Exception: broken"):  # not an object: used as the message
        parse_response({"error": "broken"}, tool="t")


@pytest.mark.parametrize(
    "message",
    [None, {}, {"result": {"content": []}, "error": {}}, {"result": 1}, {"result": {}}, {"result": {"content": "a"}}],
)
def test_a_response_without_exactly_one_of_result_and_error_is_refused(message: JsonValue) -> None:
    """IPC-D-15: a response has either `result` or `error`."""
    with pytest.raises(InvalidRequestError):
        parse_response(message, tool="t")


def test_every_typed_dict_has_readable_types() -> None:
    kinds = [kind for kind in vars(messages).values() if hasattr(kind, "__required_keys__")]
    assert len(kinds) > 5
    for kind in kinds:
        assert get_type_hints(kind).keys() == kind.__required_keys__ | kind.__optional_keys__
