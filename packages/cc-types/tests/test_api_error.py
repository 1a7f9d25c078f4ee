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


def test_a_given_error_type_is_kept() -> None:
    assert APIError(status=400, error_type="billing_error", message="No").error_type == "billing_error"


@pytest.mark.parametrize(("status", "retryable"), [(400, False), (401, False), (408, True), (409, True), (413, False)])
def test_a_client_error_is_retryable_only_if_it_may_pass(status: int, *, retryable: bool) -> None:
    assert APIError(status=status, message="No").retryable is retryable


@pytest.mark.parametrize("status", [429, 500, 502, 529])
def test_overload_and_server_errors_are_retryable(status: int) -> None:
    assert APIError(status=status, message="No").retryable


@pytest.mark.parametrize(
    ("error_type", "retryable"), [("overloaded_error", True), ("rate_limit", True), ("authentication_failed", False)]
)
def test_without_a_status_the_type_decides(error_type: str, *, retryable: bool) -> None:
    assert APIError(status=None, error_type=error_type, message="No").retryable is retryable


def test_the_message_tells_status_type_and_request() -> None:
    error = APIError(status=529, message="Overloaded.", request_id="req_1", retry_after=2.5)

    assert str(error) == (
        "The API answered with status 529 (overloaded_error, request req_1): Overloaded. Try again later."
    )
    assert error.retry_after == 2.5


@pytest.mark.parametrize(
    ("status", "advice"),
    [(401, "Log in"), (400, "Change the request"), (500, "Try again later"), (429, "fewer requests")],
)
def test_the_message_says_what_to_do(status: int, advice: str) -> None:
    assert advice in str(APIError(status=status, message="No"))


def test_a_missing_status_is_said_to_be_missing() -> None:
    assert str(APIError(status=None, message="No")).startswith("The API answered with no status (api_error): No.")
