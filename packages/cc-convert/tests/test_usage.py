from types import MappingProxyType

import pytest

from cc_convert import convert_sdk_messages_to_cli_response, convert_usage_dict_to_cli_usage
from cc_types import CacheCreation, CLIUsage, OutputTokensDetails, ServerToolUse

RESULT: dict[str, object] = {"type": "result", "subtype": "success", "is_error": False}
FULL: dict[str, object] = {
    "input_tokens": 1, "output_tokens": 2, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 4,
    "server_tool_use": {"web_search_requests": 5, "web_fetch_requests": 6},
    "service_tier": "standard",
    "cache_creation": {"ephemeral_1h_input_tokens": 7, "ephemeral_5m_input_tokens": 8},
    "output_tokens_details": {"thinking_tokens": 9},
    "a_field_of_next_year": {"tokens": [10]},
}  # fmt: skip


def warned(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    assert all(record.name.startswith("cc_convert") for record in caplog.records)
    return [(record.levelname, record.message) for record in caplog.records]


def test_every_count_is_converted_and_typed(caplog: pytest.LogCaptureFixture) -> None:
    """SDK-US2-1, SDK-US2-2, SDK-US2-3, SDK-FR-002: of any mapping."""
    usage = convert_usage_dict_to_cli_usage(MappingProxyType(FULL))

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


@pytest.mark.parametrize("value", ["12", [1], {"tokens": 1}, *map(float, ("nan", "inf", "-inf")), -1, -0.5], ids=repr)
def test_what_is_no_count_is_zero_with_a_warning(value: object, caplog: pytest.LogCaptureFixture) -> None:
    """SDK-EC-1, SDK-ADD-06"""
    usage = convert_usage_dict_to_cli_usage({"input_tokens": value, "output_tokens": 2})

    assert (usage.input_tokens, usage.output_tokens) == (0, 2)
    [(level, message)] = warned(caplog)
    assert level == "WARNING"
    assert message.startswith("usage.input_tokens is not a count but ")


@pytest.mark.parametrize(("value", "count"), [(True, 1), (False, 0), (None, 0), (12.0, 12), (0, 0), (10**30, 10**30)])
def test_what_means_a_count_is_taken_without_a_warning(
    value: object, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    """SDK-EC-1, SDK-ADD-06: a bool is 1 or 0, `None` is the default."""
    usage = convert_usage_dict_to_cli_usage({"input_tokens": value, "server_tool_use": {"web_fetch_requests": value}})

    assert (usage.input_tokens, type(usage.input_tokens)) == (count, int)
    assert usage.server_tool_use == ServerToolUse(web_fetch_requests=count)
    assert caplog.records == []


NO_COUNT: dict[str, object] = {"cache_creation": {"ephemeral_1h_input_tokens": "12"}}


@pytest.mark.parametrize(
    ("usage", "expected", "message"),
    [
        *(
            ({"input_tokens": 1, field: 3}, CLIUsage(input_tokens=1),
             f"Left out usage.{field}: a value of type int cannot be used there")
            for field in ("server_tool_use", "cache_creation", "service_tier", "speed", "iterations")
        ),
        ({"input_tokens": 12.75}, CLIUsage(input_tokens=12),
         "usage.input_tokens is a count with a fraction; leaving the fraction out"),
        (NO_COUNT, CLIUsage(cache_creation=CacheCreation()),
         "usage.cache_creation.ephemeral_1h_input_tokens is not a count but of type str; using 0"),
    ],
    ids=["server_tool_use", "cache_creation", "service_tier", "speed", "iterations", "fraction", "nested"],
)  # fmt: skip
def test_a_warning_names_place_and_type_and_other_values_stay(
    usage: dict[str, object], expected: CLIUsage, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    """SDK-EC-1, SDK-ADD-07, SDK-ADD-08: of a fraction, the number itself is not lost."""
    assert convert_usage_dict_to_cli_usage(usage) == expected
    assert warned(caplog) == [("WARNING", message)]


def test_a_usage_that_is_no_object_is_no_usage(caplog: pytest.LogCaptureFixture) -> None:
    """SDK-EC-1"""
    assert convert_sdk_messages_to_cli_response([RESULT | {"usage": [1, 2]}]).usage == CLIUsage()
    assert warned(caplog) == [("WARNING", "usage is of type list; using 0 for all of it")]
