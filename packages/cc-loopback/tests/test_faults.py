"""Faults, types by the official client."""

from typing import Any

import anthropic
import httpx2
import pytest
from anthropic import Anthropic

from cc_loopback import LoopbackServer

from .conftest import BODY, PROMPT, Connect, Serve, ask


def append_types(client: Anthropic, types: list[str]) -> None:
    """Append the event types in a stream, without pings, which the client drops."""
    with client.messages.create(model="m", max_tokens=9, messages=PROMPT, stream=True) as stream:
        types.extend(event.type for event in stream)


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


def test_type_message_and_headers_can_be_chosen(serve: Serve, connect: Connect) -> None:
    server = serve(None)
    server.fail_next(status=400, error_type="odd_error", message="prompt is too long", headers={"x-odd": "1"})
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long") as caught:
        ask(connect(server))
    body: Any = caught.value.body
    assert body["error"]["type"] == "odd_error"
    assert caught.value.response.headers["x-odd"] == "1"


def test_client_retries_after_the_time_of_the_header(fine: LoopbackServer) -> None:
    """LOOP-31."""
    fine.fail_next(status=429, times=1, headers={"retry-after": "0.01"})
    with Anthropic(base_url=fine.url, api_key="key", max_retries=1) as client:
        assert ask(client).content
    assert len(fine.requests) == 2
    assert fine.calls[1].headers["x-stainless-retry-count"] == "1"


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


def test_cut_stream_delivers_its_events_and_then_a_connection_error(serve: Serve, connect: Connect) -> None:
    """LOOP-30."""
    server = serve(lambda body: "one two three four")
    server.fail_next(after_events=5)
    types: list[str] = []
    with pytest.raises((httpx2.TransportError, anthropic.APIConnectionError)):
        append_types(connect(server), types)
    # The fifth event belongs to the block's second delta; the client hides the ping.
    assert types == ["message_start", "content_block_start", "content_block_delta", "content_block_delta"]


@pytest.mark.parametrize("after_events", [0, 100])
def test_stream_can_be_cut_before_its_first_and_after_its_last_event(serve: Serve, after_events: int) -> None:
    server = serve(lambda body: "one")
    server.fail_next(after_events=after_events)
    received = b""
    with pytest.raises(httpx2.RemoteProtocolError):
        with httpx2.stream("POST", f"{server.url}/v1/messages", json={**BODY, "stream": True}) as response:
            assert response.status_code == 200
            for chunk in response.iter_raw():
                received += chunk
    assert received.endswith(b'data: {"type":"message_stop"}\n\n') == (after_events == 100)


def test_error_event_ends_a_stream_after_some_events(serve: Serve, connect: Connect) -> None:
    server = serve(lambda body: "one two three")
    server.fail_next(status=529, after_events=2, message="Busy", headers={"x-odd": "1"})
    types: list[str] = []
    with pytest.raises(anthropic.APIStatusError) as caught:
        append_types(connect(server), types)
    body: Any = caught.value.body
    assert body["error"] == {"type": "overloaded_error", "message": "Busy"}
    assert caught.value.response.headers["x-odd"] == "1"
    assert types == ["message_start", "content_block_start"]


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


def test_fault_of_one_path_does_not_affect_others(fine: LoopbackServer, connect: Connect) -> None:
    client = connect(fine)
    fine.fail_next(status=500, path="/v1/messages/count_tokens")
    assert ask(client).content
    with pytest.raises(anthropic.InternalServerError):
        client.messages.count_tokens(model="m", messages=PROMPT)


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


def test_a_reset_server_has_its_initial_responder_and_no_records(serve: Serve, connect: Connect) -> None:
    """LOOP-08."""
    server = serve(lambda body: "first")
    client = connect(server)
    lists = (server.requests, server.calls, server.errors)

    def raise_error(body: dict[str, Any]) -> str:
        raise ValueError(body)

    server.respond = raise_error
    with pytest.raises(anthropic.APIStatusError):
        ask(client)
    server.fail_next(status=529, times=3)
    server.reset()

    assert lists == ([], [], [])
    assert str(ask(client).content[0].text) == "first"  # pyright: ignore[reportAttributeAccessIssue,reportUnknownMemberType,reportUnknownArgumentType]
    assert len(server.requests) == 1
