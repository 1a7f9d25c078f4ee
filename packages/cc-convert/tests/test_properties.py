"""Properties that hold for any CLI output."""

import logging
import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cc_convert import convert_sdk_messages_to_cli_response, convert_usage_dict_to_cli_usage
from cc_types import CLIResponse, MessageParseError

Frame: TypeAlias = dict[str, object]
Form: TypeAlias = Callable[[Frame], object]

leaves = st.none() | st.booleans() | st.integers() | st.text()
finite = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    leaves | finite,
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(), values, max_size=3),
    max_leaves=6,
)
counts = st.integers() | st.floats() | json_values

COUNTS = ["input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"]
NESTED = {
    "server_tool_use": ["web_search_requests", "web_fetch_requests"],
    "cache_creation": ["ephemeral_1h_input_tokens", "ephemeral_5m_input_tokens"],
    "output_tokens_details": ["thinking_tokens"],
}
MODEL_COUNTS = ["inputTokens", "outputTokens", "cacheReadInputTokens", "thinkingTokens", "maxOutputTokens"]


def fields(names: list[str], values: st.SearchStrategy[Any]) -> st.SearchStrategy[Frame]:
    return st.fixed_dictionaries({}, optional=dict.fromkeys(names, values))


usages = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(COUNTS, counts)
    | {name: fields(names, counts) | json_values for name, names in NESTED.items()}
    | dict.fromkeys(["service_tier", "inference_geo", "speed", "iterations", "fallback_credit", "new"], json_values),
)
results = st.fixed_dictionaries(
    {"type": st.just("result"), "subtype": st.text() | json_values, "is_error": st.booleans() | json_values},
    optional=dict.fromkeys(
        [
            "duration_ms", "num_turns", "session_id", "result", "stop_reason", "total_cost_usd", "structured_output",
            "permission_denials", "errors", "api_error_status", "uuid", "origin", "user_message_uuids",
        ],
        json_values,
    )
    | {
        "usage": usages | json_values,
        "modelUsage": st.dictionaries(st.text(), fields(MODEL_COUNTS, counts) | json_values, max_size=2) | json_values,
    },
)  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def quiet() -> Iterator[None]:
    """Warnings are expected here, and there are thousands."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def count(value: object) -> int:
    """Return the expected count, by a second implementation."""
    if isinstance(value, float) and (math.isnan(value) or math.isinf(value)):
        return 0
    return max(math.trunc(value), 0) if isinstance(value, int | float) else 0


@given(usage=usages)
def test_any_usage_converts_and_no_number_is_lost(usage: Frame) -> None:
    """SDK-ADD-07, SDK-EC-1"""
    converted = convert_usage_dict_to_cli_usage(usage)

    for name in COUNTS:
        assert getattr(converted, name) == count(usage.get(name))
    for outer, names in NESTED.items():
        given_fields, typed = usage.get(outer), getattr(converted, outer)
        assert (typed is not None) == isinstance(given_fields, dict)
        for name in names if typed is not None else ():
            assert getattr(typed, name) == count(cast("Frame", given_fields).get(name))
    assert converted.model_extra == {name: usage[name] for name in ("new",) if name in usage}


@given(usage=usages)
def test_a_converted_usage_survives_json(usage: Frame) -> None:
    """SDK-ADD-02"""
    converted = convert_usage_dict_to_cli_usage(usage)

    assert type(converted).model_validate_json(converted.model_dump_json()) == converted


@given(frame=results)
def test_any_result_converts_or_says_what_is_missing(frame: Frame) -> None:
    """SDK-EC-1, SDK-ADD-02: robust, and the result can be written and read."""
    try:
        response = convert_sdk_messages_to_cli_response([frame])
    except MessageParseError:
        return

    assert CLIResponse.model_validate_json(response.model_dump_json()) == response


@given(frame=results)
def test_a_dict_and_an_object_convert_alike(as_object: Form, frame: Frame) -> None:
    """SDK-ADD-05"""

    def converted(message: object) -> CLIResponse | str:
        try:
            return convert_sdk_messages_to_cli_response([message])
        except MessageParseError as error:
            return error.reason

    assert converted(as_object(frame)) == converted(frame)
