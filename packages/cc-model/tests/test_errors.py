"""Error messages, and facts that errors keep."""

import pickle
import re

import pytest
from pydantic_ai.exceptions import ModelConnectionError, ModelHTTPError, ModelRateLimitError, UserError

from cc_model.errors import claude_code_errors
from cc_session.internals import bundled_cli
from cc_types import CLINotFoundError, ProcessExitedError


def http_error(status: int, hint: str | None = None) -> ModelHTTPError:
    category = ModelRateLimitError if status == 429 else None
    body = {"error": {"message": "no"}}
    return ModelHTTPError.for_category(category, status_code=status, model_name="m", body=body, hint=hint)


def test_an_http_error_keeps_its_class_and_facts_and_gets_a_hint() -> None:
    """MODEL-49"""
    with pytest.raises(ModelRateLimitError) as caught, claude_code_errors("m"):
        raise http_error(429)
    error = caught.value
    assert isinstance(error, ModelHTTPError)
    assert (error.status_code, error.body) == (429, {"error": {"message": "no"}})
    assert error.hint is not None
    assert error.hint in str(error)
    # A traceback shows no other error, since the errors below add nothing.
    assert error.__cause__ is None
    assert error.__suppress_context__


def test_the_hint_for_a_wrong_login_has_the_path_of_the_cli() -> None:
    """MODEL-87"""
    with pytest.raises(ModelHTTPError, match=f"run {re.escape(bundled_cli())} in a terminal"), claude_code_errors("m"):
        raise http_error(401)


@pytest.mark.parametrize("error", [http_error(418), http_error(401, hint="Already there.")])
def test_an_http_error_without_a_better_hint_stays_as_it_is(error: ModelHTTPError) -> None:
    with pytest.raises(ModelHTTPError) as caught, claude_code_errors("m"):
        raise error
    assert caught.value is error


def test_a_missing_cli_is_a_user_error() -> None:
    """MODEL-49"""
    with pytest.raises(UserError, match="somewhere"), claude_code_errors("m"):
        raise ModelConnectionError("m", "Connection error.") from CLINotFoundError(path="somewhere")


def test_a_connection_error_names_the_failure_of_the_process() -> None:
    """MODEL-49, MODEL-50"""
    with pytest.raises(ModelConnectionError, match="SIGKILL") as caught, claude_code_errors("m"):
        try:
            raise RuntimeError("in between") from ProcessExitedError(exit_code=-9)
        except RuntimeError as between:
            raise ModelConnectionError("m", "Connection error.", phase="read") from between
    assert caught.value.phase == "read"
    assert isinstance(caught.value.__cause__, ProcessExitedError)
    assert caught.value.__cause__.__traceback__ is None
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_connection_error_with_another_cause_stays_as_it_is() -> None:
    error = ModelConnectionError("m", "Connection error.")
    with pytest.raises(ModelConnectionError) as caught, claude_code_errors("m"):
        raise error
    assert caught.value is error


def test_the_hint_for_a_throttle_has_the_wait() -> None:
    """MODEL-101"""
    error = http_error(429)
    error.retry_after = 1000
    with (
        pytest.raises(ModelRateLimitError, match="The API asks to wait 1000 seconds") as caught,
        claude_code_errors("m"),
    ):
        raise error
    assert caught.value.retry_after == 1000
