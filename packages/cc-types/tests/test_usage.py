import pytest
from pydantic import ValidationError

from cc_types import CacheCreation, CLIUsage, ModelUsage, OutputTokensDetails, ServerToolUse

FULL = {
    "input_tokens": 1,
    "output_tokens": 2,
    "cache_creation_input_tokens": 3,
    "cache_read_input_tokens": 4,
    "server_tool_use": {"web_search_requests": 5, "web_fetch_requests": 6},
    "service_tier": "priority",
    "cache_creation": {"ephemeral_1h_input_tokens": 7, "ephemeral_5m_input_tokens": 8},
    "output_tokens_details": {"thinking_tokens": 9},
    "inference_geo": "us",
    "speed": "fast",
    "iterations": [{"type": "message", "input_tokens": 1}],
    "fallback_credit": {"outcome": "spent"},
}


def test_a_full_usage_is_typed_to_the_leaves() -> None:
    """SDK-FR-002, SDK-ADD-03"""
    usage = CLIUsage.model_validate(FULL)

    assert usage.server_tool_use == ServerToolUse(web_search_requests=5, web_fetch_requests=6)
    assert usage.cache_creation == CacheCreation(ephemeral_1h_input_tokens=7, ephemeral_5m_input_tokens=8)
    assert usage.output_tokens_details == OutputTokensDetails(thinking_tokens=9)
    assert usage.model_dump() == FULL
    assert usage.model_extra == {}


def test_null_counts_are_zero_and_unknown_fields_are_kept() -> None:
    """SDK-ADD-03: the API writes null for a cache that was not used."""
    assert CLIUsage.model_validate(dict.fromkeys(FULL)) == CLIUsage()
    assert CLIUsage.model_validate({"audio_tokens": 3}).model_extra == {"audio_tokens": 3}


@pytest.mark.parametrize("count", [-1, "many", 1.5])
def test_a_negative_count_and_an_infinite_cost_are_rejected(count: object) -> None:
    with pytest.raises(ValidationError):
        CLIUsage.model_validate({"input_tokens": count})
    with pytest.raises(ValidationError):
        ModelUsage(cost_usd=float("nan"))


def test_detail_that_an_older_cli_does_not_report_is_not_zero() -> None:
    assert ModelUsage().thinking_tokens is None
