"""Faults, types by the official client."""

from typing import Any

import anthropic
import pytest
from anthropic import Anthropic

from cc_loopback import LoopbackServer

from .conftest import Connect, ask

KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "invalid_request_error",  # 409 and 503 have the default for 4xx and 5xx
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    503: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}


@pytest.mark.parametrize(("status", "kind"), KINDS.items())
def test_status_comes_with_the_error_type_of_the_api(
    fine: LoopbackServer, connect: Connect, status: int, kind: str
) -> None:
    """LOOP-31."""
    fine.fail_next(status=status)
    with pytest.raises(anthropic.APIStatusError) as caught:
        ask(connect(fine))
    error = caught.value
    body: Any = error.body
    assert (error.status_code, body["type"], body["error"]["type"]) == (status, "error", kind)
    assert body["error"]["message"]
    assert body["request_id"] == error.request_id == error.response.headers["request-id"]


def test_fault_applies_to_n_requests_which_raise_the_class_of_the_status(
    fine: LoopbackServer, connect: Connect
) -> None:
    """LOOP-30, LOOP-33."""
    client = connect(fine)
    for status, times in ((500, 2), (429, 1), (529, 1)):
        fine.fail_next(status=status, times=times)
    for kind in [anthropic.InternalServerError] * 2 + [anthropic.RateLimitError, anthropic.OverloadedError]:
        with pytest.raises(kind):
            ask(client)
    assert ask(client).content
    assert len(fine.requests) == 5


def test_without_streaming_an_error_is_a_status_and_a_cut_disconnects(fine: LoopbackServer, connect: Connect) -> None:
    fine.fail_next(status=529, after_events=2)
    with pytest.raises(anthropic.OverloadedError, match="Overloaded"):
        ask(connect(fine))
    fine.fail_next(after_events=1)
    with pytest.raises(anthropic.APIConnectionError):
        ask(connect(fine))


def test_delay_alone_makes_a_normal_answer_late(fine: LoopbackServer) -> None:
    """LOOP-32."""
    fine.fail_next(delay=30)
    with Anthropic(base_url=fine.url, api_key="key", max_retries=0, timeout=0.1) as client:
        with pytest.raises(anthropic.APITimeoutError):
            ask(client)
    fine.fail_next(delay=0.01)
    with Anthropic(base_url=fine.url, api_key="key", max_retries=0) as client:
        assert ask(client).content


@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        ({}, "at least one of status, after_events and delay"),
        ({"status": 200}, "status must be an error status from 400 to 599, not 200"),
        ({"status": 500, "times": 0}, "times must be at least 1"),
        ({"after_events": -1}, "after_events must not be negative"),
        ({"delay": -1}, "delay must not be negative"),
    ],
)
def test_fault_with_invalid_parameters_is_refused(fault: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        LoopbackServer().fail_next(**fault)
