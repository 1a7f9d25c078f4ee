"""Recorded requests, and requests refused as the API does."""

import json
from typing import Any

import httpx2
import pytest

from .conftest import BODY, PROMPT, Serve


def test_every_message_body_is_recorded_in_order_and_unchanged(serve: Serve) -> None:
    """LOOP-04, LOOP-17: also if the responder changes it."""

    def respond(body: dict[str, Any]) -> str:
        body["messages"].clear()
        return "fine"

    server = serve(respond)
    server.fail_next(status=500)
    bodies = [{**BODY, "max_tokens": number + 1} for number in range(3)]
    for body in bodies:
        httpx2.post(f"{server.url}/v1/messages?beta=true", json=body, headers={"X-Api-Key": "secret"})
    httpx2.post(f"{server.url}/v1/messages/count_tokens", json=BODY)
    assert server.requests == bodies
    assert len(server.calls) == 4
    call = server.calls[0]
    assert (call.method, call.path, dict(call.query)) == ("POST", "/v1/messages", {"beta": "true"})
    assert call.headers["x-api-key"] == "secret"
    assert call.body == json.loads(call.raw) == bodies[0]


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({"max_tokens": 9, "messages": PROMPT}, "model: Field required"),
        ({"model": "m", "messages": PROMPT}, "max_tokens: Field required"),
        ({"model": "m", "max_tokens": 9}, "messages: Field required"),
        ({**BODY, "model": ""}, "model: Input should be a non-empty string"),
        ({**BODY, "max_tokens": 0}, "max_tokens: Input should be an integer greater than or equal to 1"),
        ({**BODY, "max_tokens": True}, "max_tokens: Input should be an integer greater than or equal to 1"),
        ({**BODY, "messages": {}}, "messages: Input should be a list"),
        ({**BODY, "messages": 5, "tools": 3}, "messages: Input should be a list"),
        ({**BODY, "messages": []}, "messages: at least one message is required"),
        ({**BODY, "messages": ["x"]}, "messages.0: Input should be an object"),
        ({**BODY, "messages": [*PROMPT, {"content": "x"}]}, "messages.1.role: Field required"),
        ({**BODY, "messages": [{"role": "user"}]}, "messages.0.content: Field required"),
        ([BODY], "The request body is not valid JSON: expected an object"),
    ],
)
def test_incomplete_body_is_refused_naming_the_field(serve: Serve, body: Any, complaint: str) -> None:
    response = httpx2.post(f"{serve(None).url}/v1/messages", json=body)
    assert response.status_code == 400
    assert response.json()["error"] == {"type": "invalid_request_error", "message": complaint}


def test_a_system_message_may_set_the_effort_alone(serve: Serve) -> None:
    messages: list[Any] = [*PROMPT, {"role": "system", "output_config": {"effort": "low"}}]
    url = f"{serve(None).url}/v1/messages"
    assert httpx2.post(url, json={**BODY, "messages": messages}).status_code == 200
    messages[-1]["output_config"] = {}
    assert "messages.1.content: Field required" in httpx2.post(url, json={**BODY, "messages": messages}).text


@pytest.mark.parametrize("content", [b"", b"{", b"\xff"])
def test_body_that_is_not_json_is_refused_and_only_a_call(serve: Serve, content: bytes) -> None:
    server = serve(None)
    response = httpx2.post(f"{server.url}/v1/messages", content=content)
    assert response.status_code == 400
    assert "not valid JSON" in response.json()["error"]["message"]
    assert server.requests == []
    assert [(call.body, call.raw) for call in server.calls] == [(None, content)]


def test_token_count_needs_no_max_tokens_but_messages(serve: Serve) -> None:
    url = f"{serve(None).url}/v1/messages/count_tokens"
    assert httpx2.post(url, json={"model": "m", "messages": PROMPT}).json() == {"input_tokens": 12}
    assert httpx2.post(url, json={"model": "m"}).json()["error"]["message"] == "messages: Field required"


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/"), ("POST", "/v1/complete"), ("GET", "/v1/messages"), ("POST", "/v1/messages/"), ("PUT", "/v1/models")],
)
def test_unknown_paths_are_not_found(serve: Serve, method: str, path: str) -> None:
    """LOOP-16."""
    response = httpx2.request(method, f"{serve(None).url}{path}")
    assert response.status_code == 404
    assert response.json()["error"]["type"] == "not_found_error"
    assert response.headers["request-id"] == response.json()["request_id"]


def test_head_is_answered_without_a_body(serve: Serve) -> None:
    server = serve(None)
    response = httpx2.head(server.url)
    assert (response.status_code, response.content) == (404, b"")
    assert [call.method for call in server.calls] == ["HEAD"]
