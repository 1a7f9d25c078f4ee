import json
import pickle
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from cc_types import CLIResponse, JsonValue, ModelUsage

LINES = Path(__file__).with_name("results.jsonl").read_text("utf-8").splitlines()
each_recorded_result = pytest.mark.parametrize("line", LINES, ids=["success", "api", "max_turns", "denied", "object"])

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(), values, max_size=3),
    max_leaves=8,
)


@each_recorded_result
def test_every_field_of_a_recorded_result_is_known(line: str) -> None:
    """SDK-FR-001, SDK-ADD-01: every field that the CLI sends has a type."""
    response = CLIResponse.model_validate_json(line)

    assert response.model_extra == {}
    assert response.usage.model_extra == {}
    assert [usage.model_extra for usage in (response.model_usage or {}).values()] in ([], [{}])


@each_recorded_result
def test_a_recorded_result_is_written_as_it_was_read(line: str) -> None:
    """SDK-ADD-01, SDK-ADD-02: camelCase names included."""
    assert json.loads(CLIResponse.model_validate_json(line).model_dump_json(exclude_unset=True)) == json.loads(line)


@each_recorded_result
def test_a_response_survives_json_and_pickle(line: str) -> None:
    """SDK-ADD-02"""
    response = CLIResponse.model_validate_json(line)

    assert CLIResponse.model_validate_json(response.model_dump_json()) == response
    assert pickle.loads(pickle.dumps(response)) == response


def test_api_errors_and_limits_are_not_success() -> None:
    error, limit = map(CLIResponse.model_validate_json, LINES[1:3])

    assert not error.succeeded and not limit.succeeded
    assert (error.subtype, error.api_error_status, error.api_error_type) == ("success", 400, "invalid_request_error")
    assert (limit.subtype, limit.result) == ("error_max_turns", "")
    assert limit.errors == ["Reached maximum number of turns (1)"]


def test_an_object_is_reported_as_structured_output() -> None:
    assert CLIResponse.model_validate_json(LINES[4]).structured_output == {"city": "Paris", "temp": 3}


@given(unknown=st.dictionaries(st.text(min_size=1).map(lambda name: f"x{name}"), json_values))
def test_unknown_fields_are_kept_and_written_back(unknown: dict[str, JsonValue]) -> None:
    """SDK-ADD-01"""
    response = CLIResponse.model_validate({"subtype": "success", "is_error": False, **unknown})

    assert response.model_extra == unknown
    assert CLIResponse.model_validate_json(response.model_dump_json()) == response


def test_fields_are_read_by_both_names_and_written_by_the_clis() -> None:
    """SDK-ADD-01"""
    wire = CLIResponse.model_validate(
        {"subtype": "success", "is_error": False, "modelUsage": {"m": {"inputTokens": 3, "costUSD": 0.5}}}
    )
    python = CLIResponse(subtype="success", is_error=False, model_usage={"m": ModelUsage(input_tokens=3, cost_usd=0.5)})

    assert wire == python
    assert json.loads(python.model_dump_json(exclude_unset=True))["modelUsage"] == {
        "m": {"inputTokens": 3, "costUSD": 0.5}
    }


def test_a_lone_surrogate_in_the_text_does_not_make_it_unwritable() -> None:
    """SDK-ADD-02: JavaScript can cut a string inside an emoji, and JSON escapes carry that."""
    half: dict[str, object] = {"né \ud83d": ["\ud83d", 3]}
    denial = {"tool_name": "Write", "tool_use_id": "toolu_1", "tool_input": half}

    response = CLIResponse.model_validate(
        {
            "subtype": "success",
            "is_error": False,
            "result": "né \ud83d",
            "structured_output": half,
            "errors": ["\ude00"],
            "permission_denials": [denial],
            "deferred_tool_use": {"id": "toolu_1", "name": "Write", "input": half},
        }
    )

    assert response.result == "né \N{REPLACEMENT CHARACTER}"
    assert response.structured_output == {"né \N{REPLACEMENT CHARACTER}": ["\N{REPLACEMENT CHARACTER}", 3]}
    assert CLIResponse.model_validate_json(response.model_dump_json()) == response


def test_a_message_of_another_type_is_rejected() -> None:
    with pytest.raises(ValidationError):
        CLIResponse.model_validate({"type": "assistant", "subtype": "success", "is_error": False})


def test_the_end_of_the_login_is_a_time() -> None:
    """SES-130"""
    fields: dict[str, JsonValue] = {"subtype": "success", "is_error": False}
    ends_at = "2026-12-05T05:41:10.998Z"
    response = CLIResponse.model_validate({**fields, "credential_expires_at": ends_at})

    assert response.credential_expires_at == datetime(2026, 12, 5, 5, 41, 10, 998_000, tzinfo=UTC)
    assert json.loads(response.model_dump_json())["credential_expires_at"] == ends_at.replace("998Z", "998000Z")
    assert CLIResponse.model_validate(fields).credential_expires_at is None
