import logging
from types import MappingProxyType

import pytest

from cc_convert import convert_sdk_messages_to_cli_response, convert_usage_dict_to_cli_usage
from cc_types import CacheCreation, CLIUsage, ModelUsage, OutputTokensDetails, ServerToolUse

FULL: dict[str, object] = {
    "input_tokens": 1,
    "output_tokens": 2,
    "cache_creation_input_tokens": 3,
    "cache_read_input_tokens": 4,
    "server_tool_use": {"web_search_requests": 5, "web_fetch_requests": 6},
    "service_tier": "standard",
    "cache_creation": {"ephemeral_1h_input_tokens": 7, "ephemeral_5m_input_tokens": 8},
    "output_tokens_details": {"thinking_tokens": 9},
    "a_field_of_next_year": {"tokens": [10]},
}
NOT_COUNTS = ["12", [1], {"tokens": 1}, float("nan"), float("inf"), float("-inf"), -1, -0.5]


def test_every_count_is_converted_and_typed(caplog: pytest.LogCaptureFixture) -> None:
    """SDK-US2-1, SDK-US2-2, SDK-US2-3, SDK-FR-002, SDK-SC-002"""
    usage = convert_usage_dict_to_cli_usage(FULL)

    assert usage.model_dump(exclude_unset=True) == FULL
    assert usage.server_tool_use == ServerToolUse(web_search_requests=5, web_fetch_requests=6)
    assert usage.cache_creation == CacheCreation(ephemeral_1h_input_tokens=7, ephemeral_5m_input_tokens=8)
    assert usage.output_tokens_details == OutputTokensDetails(thinking_tokens=9)
    assert caplog.records == []


def test_no_usage_is_no_tokens(caplog: pytest.LogCaptureFixture) -> None:
    """SDK-US2-4"""
    usage = convert_usage_dict_to_cli_usage(None)

    assert usage == CLIUsage()
    assert (usage.input_tokens, usage.output_tokens) == (0, 0)
    assert (usage.cache_creation_input_tokens, usage.cache_read_input_tokens) == (0, 0)
    assert caplog.records == []


def test_any_mapping_is_a_usage() -> None:
    assert convert_usage_dict_to_cli_usage(MappingProxyType({"input_tokens": 3})).input_tokens == 3


@pytest.mark.parametrize("value", NOT_COUNTS, ids=repr)
def test_what_is_no_count_is_zero_with_a_warning(value: object, caplog: pytest.LogCaptureFixture) -> None:
    """SDK-EC-1, SDK-FR-008, SDK-SC-005, SDK-ADD-06"""
    usage = convert_usage_dict_to_cli_usage({"input_tokens": value, "output_tokens": 2})

    assert (usage.input_tokens, usage.output_tokens) == (0, 2)
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert record.message.startswith("usage.input_tokens is not a count but ")
    assert record.name.startswith("cc_convert")


def test_a_warning_names_the_type(caplog: pytest.LogCaptureFixture) -> None:
    """SDK-ADD-08"""
    convert_usage_dict_to_cli_usage({"cache_creation": {"ephemeral_1h_input_tokens": "12"}})

    assert [record.message for record in caplog.records] == [
        "usage.cache_creation.ephemeral_1h_input_tokens is not a count but of type str; using 0"
    ]


@pytest.mark.parametrize(("value", "count"), [(True, 1), (False, 0), (None, 0), (12.0, 12), (0, 0), (10**30, 10**30)])
def test_what_means_a_count_is_taken_without_a_warning(
    value: object, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    """SDK-EC-1, SDK-ADD-06: a bool is 1 or 0, `None` is the default."""
    usage = convert_usage_dict_to_cli_usage({"input_tokens": value, "server_tool_use": {"web_fetch_requests": value}})

    assert usage.input_tokens == count
    assert type(usage.input_tokens) is int
    assert usage.server_tool_use == ServerToolUse(web_fetch_requests=count)
    assert caplog.records == []


def test_a_fraction_is_dropped_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """SDK-ADD-07: the number itself is not lost."""
    assert convert_usage_dict_to_cli_usage({"input_tokens": 12.75}).input_tokens == 12
    assert [record.message for record in caplog.records] == [
        "usage.input_tokens is a count with a fraction; leaving the fraction out"
    ]


@pytest.mark.parametrize("field", ["server_tool_use", "cache_creation", "service_tier", "speed", "iterations"])
def test_a_field_of_the_wrong_kind_is_left_out_with_a_warning(field: str, caplog: pytest.LogCaptureFixture) -> None:
    """SDK-EC-1, SDK-DP-2"""
    usage = convert_usage_dict_to_cli_usage({"input_tokens": 1, field: 3})

    assert usage == CLIUsage(input_tokens=1)
    assert [record.message for record in caplog.records] == [
        f"Left out usage.{field}: a value of type int is of no use there"
    ]


def test_a_usage_that_is_no_object_is_no_usage(caplog: pytest.LogCaptureFixture) -> None:
    """SDK-EC-1"""
    frame = {"type": "result", "subtype": "success", "is_error": False, "usage": [1, 2]}

    assert convert_sdk_messages_to_cli_response([frame]).usage == CLIUsage()
    assert [record.message for record in caplog.records] == ["usage is of type list; using 0 for all of it"]


@pytest.mark.parametrize("field", ["modelUsage", "model_usage_since_last_result"])
def test_counts_by_model_are_converted_alike(field: str, caplog: pytest.LogCaptureFixture) -> None:
    """SDK-ADD-06"""
    models = {"m": {"inputTokens": "12", "outputTokens": True, "thinkingTokens": 2.0, "provider": "firstParty"}}
    frame = {"type": "result", "subtype": "success", "is_error": False, field: models}

    response = convert_sdk_messages_to_cli_response([frame])

    assert (response.model_usage or response.model_usage_since_last_result) == {
        "m": ModelUsage(input_tokens=0, output_tokens=1, thinking_tokens=2, provider="firstParty")
    }
    assert [record.message for record in caplog.records] == [
        f"{field}.m.inputTokens is not a count but of type str; using 0"
    ]


def test_detail_by_model_that_is_not_reported_is_not_zero() -> None:
    models = {"m": {"inputTokens": 1, "thinkingTokens": None}}
    frame = {"type": "result", "subtype": "success", "is_error": False, "modelUsage": models}

    assert convert_sdk_messages_to_cli_response([frame]).model_usage == {"m": ModelUsage(input_tokens=1)}
