import pytest

from cc_types import APIError


@pytest.mark.parametrize(
    ("status", "error_type"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (404, "not_found_error"),
        (413, "request_too_large"),
        (422, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (502, "api_error"),
        (529, "overloaded_error"),
        (None, "api_error"),
    ],
)
def test_the_error_type_follows_from_the_status(status: int | None, error_type: str) -> None:
    """SDK-ADD-04: the HTTP status."""
    error = APIError(status=status, message="No")

    assert (error.status, error.error_type) == (status, error_type)
    assert APIError(status=status, error_type="billing_error", message="No").error_type == "billing_error"


@pytest.mark.parametrize(
    ("status", "error_type", "retryable"),
    [
        *((status, None, False) for status in (400, 401, 413)),
        *((status, None, True) for status in (408, 409, 429, 500, 502, 529)),
        (None, "overloaded_error", True),
        (None, "rate_limit", True),
        (None, "authentication_failed", False),
    ],
)
def test_temporary_failures_are_retryable_and_without_a_status_the_type_decides(
    status: int | None, error_type: str | None, *, retryable: bool
) -> None:
    assert APIError(status=status, error_type=error_type, message="No").retryable is retryable


def test_the_message_has_status_type_and_request() -> None:
    error = APIError(status=529, message="Overloaded.", request_id="req_1", retry_after=2.5)

    assert str(error) == (
        "The API answered with status 529 (overloaded_error, request req_1): Overloaded. Try again later."
    )
    assert error.retry_after == 2.5
    assert str(APIError(status=None, message="No")).startswith("The API answered with no status (api_error): No.")


@pytest.mark.parametrize("status", [405, 424])
def test_a_status_that_the_api_does_not_send_has_no_advice(status: int) -> None:
    """SES-131"""
    assert str(APIError(status=status, message="No")).endswith("(invalid_request_error): No.")
