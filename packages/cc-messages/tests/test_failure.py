"""API errors from the CLI's texts, which are CLI 2.1.329's."""

from typing import Any

import pytest
from claude_agent_sdk import AssistantMessage, ResultMessage, TextBlock

from cc_messages.api.response import UnreadableEventError, as_logged, error_body, error_headers, turn_error
from cc_session.internals import bundled_cli
from cc_types import APIError, CLIConnectionError, JsonValue

LATER = " This is a server-side issue, usually temporary — try again in a moment. If it persists, check your gateway."
REMOVED = "API Error: an image in the conversation could not be processed and was removed."


def result(text: str | None, status: int | None = None, **fields: Any) -> ResultMessage:
    details: dict[str, Any] = {
        "subtype": "success",
        "is_error": True,
        "result": text,
        "api_error_status": status,
        **fields,
    }
    return ResultMessage(duration_ms=1, duration_api_ms=1, num_turns=1, session_id="s", **details)


def apology(kind: Any, *texts: str) -> AssistantMessage:
    return AssistantMessage(content=[TextBlock(text) for text in texts], model="<synthetic>", error=kind)


@pytest.mark.parametrize(
    ("text", "status", "error_type", "message"),
    [
        ("API Error: 400 max_tokens: 9 > 5", 400, "invalid_request_error", "max_tokens: 9 > 5"),
        ("Failed to authenticate. API Error: 401 token expired", 401, "authentication_error", "token expired"),
        ("Invalid API key · Fix external API key", 401, "authentication_error", None),
        ("API Error: 402 pay", 402, "billing_error", "pay"),
        ("Failed to authenticate. API Error: 403 not you", 403, "permission_error", "not you"),
        ("There's an issue with the selected model (m).", 404, "not_found_error", None),
        ("API Error: 409 conflict", 409, "conflict_error", "conflict"),
        ("Request too large (max 32MB).", 413, "request_too_large", None),
        ("API Error: Request rejected (429) · Slow down.", 429, "rate_limit_error", "Slow down."),
        (f"API Error: 500 Oh.{LATER}", 500, "api_error", "Oh"),
        (f"API Error: 504 late.{LATER}", 504, "timeout_error", "late"),
        (f"API Error: 529 Overloaded.{LATER}", 529, "overloaded_error", "Overloaded"),
        ("API Error: busy", 529, "overloaded_error", "busy"),
        ("API Error: 404 doors are shut", 500, "api_error", "404 doors are shut"),
        ("API Error: 500", 500, "api_error", "500"),
    ],
)
def test_an_api_status_arrives_with_type_and_message(
    text: str, status: int, error_type: str, message: str | None
) -> None:
    """MSG-30: `None` stands for the whole text."""
    message = message or text
    error = turn_error(result(text, status), apology("unknown", text), "http://here:1")
    assert isinstance(error, APIError)
    assert (error.status, error.error_type, error.message) == (status, error_type, message)
    assert error_body(error) == {"type": "error", "error": {"type": error_type, "message": message}}


def test_no_login_says_how_to_log_in() -> None:
    """MSG-E01"""
    error = turn_error(result("Not logged in · Please run /login"), apology("authentication_failed"), "http://here:1")
    assert isinstance(error, APIError)
    assert (error.status, error.error_type) == (401, "authentication_error")
    assert "ANTHROPIC_API_KEY" in error.message
    assert f"run {bundled_cli()} in a terminal and type /login" in error.message


@pytest.mark.parametrize(
    ("message", "kind", "words"),
    [
        (
            result("API Error: Connection to the API was lost."),
            "server_error",
            "^Connection to the API was lost. Check",
        ),
        (result(None, errors=["one", "two"]), None, "^one; two. Check that http://here:1 can be reached"),
        (
            result(None, subtype="error_during_execution"),
            None,
            "^error_during_execution. Check that http://here:1",
        ),
        (result("All is well.", is_error=False), None, "^The API's answer broke off"),
        (None, None, "^The API's answer broke off"),
    ],
)
def test_a_failure_without_a_status_is_a_lost_connection(
    message: ResultMessage | None, kind: str | None, words: str
) -> None:
    error = turn_error(message, apology(kind) if kind else None, "http://here:1")
    assert not isinstance(error, APIError)
    with pytest.raises(CLIConnectionError, match=words):
        raise error


@pytest.mark.parametrize("message", [None, result("An answer to something else.", is_error=False)])
def test_an_apology_counts_whatever_the_cli_did_afterwards(message: ResultMessage | None) -> None:
    """MSG-31: the CLI asks again without the image, and that answers another request."""
    error = turn_error(message, apology("invalid_request", REMOVED), "http://here:1")
    assert isinstance(error, APIError)
    assert (error.status, error.message) == (400, REMOVED.removeprefix("API Error: "))


def test_an_error_body_has_the_request_id_if_there_is_one() -> None:
    error = APIError(status=500, message="Oh.", request_id="req_1")
    assert error_body(error)["request_id"] == "req_1"


@pytest.mark.parametrize(
    ("words", "has_advice"),
    [
        ("claude-x-9 requires a newer version of Claude Code.", True),
        ("Please update Claude Code to use this model.", True),
        ("max_tokens: 9 > 5", False),
    ],
)
def test_a_model_too_new_for_the_cli_is_an_error_with_advice(words: str, has_advice: bool) -> None:
    """MSG-79"""
    entry: dict[str, JsonValue] = {"type": "invalid_request_error", "message": words}
    error = as_logged(APIError(status=400, message="?"), entry, 400, {})
    assert isinstance(error, APIError)
    assert error.message.startswith(words)
    assert ("cli_path" in error.message) == has_advice


def test_an_unreadable_event_is_final_also_with_a_logged_request_id() -> None:
    """MSG-E11: clients do not pay for the same events again."""
    error = as_logged(UnreadableEventError({}), None, None, {"request-id": "req_1"})
    assert isinstance(error, UnreadableEventError)
    assert not error.retryable
    assert error_headers(error) == {"x-should-retry": "false"}
