"""Tokens are counted by the API, or not at all."""

from base64 import b64encode
from typing import Any

import httpx2
import pytest

from cc_loopback import LoopbackServer
from cc_messages.api.token_count import APIAccess
from cc_types import APIError
from warm_clients.api_data import MESSAGES, text
from warm_clients.client import Client
from warm_clients.fixtures import Connect

BODY: dict[str, Any] = {
    "model": "claude-sonnet-5",
    "messages": [{"role": "user", "content": "Hello."}],
    "system": "Be brief.",
    "tools": [{"name": "f", "input_schema": {"type": "object"}}],
    "tool_choice": {"type": "any"},
}
COUNT = "/v1/messages/count_tokens"


async def test_the_api_counts_what_the_caller_sent(client: Client) -> None:
    """MSG-28: counting needs no process."""
    response = await client.http.post(f"{COUNT}?beta=true", json=BODY, headers={"anthropic-beta": "made-up-2026-01-01"})
    assert response.status_code == 200
    assert response.json().keys() == {"input_tokens"}
    assert response.json()["input_tokens"] > 0
    assert response.headers["request-id"].startswith("req_")
    [call] = client.api.calls
    assert (call.method, call.path, call.query, call.body) == ("POST", COUNT, {"beta": "true"}, BODY)
    assert call.headers["anthropic-beta"] == "made-up-2026-01-01"
    assert call.headers["anthropic-version"]
    assert not client.starts


async def test_a_message_of_a_loop_is_counted_as_it_is_sent(client: Client) -> None:
    """MSG-28: the API cannot count Claude Code's own calls."""
    use: dict[str, Any] = {"id": "toolu_1", "name": "add", "input": {}}
    answer = {
        "role": "assistant",
        "content": [
            {"type": "mcp_tool_use", "server_name": "tools", **use},
            {"type": "mcp_tool_result", "tool_use_id": "toolu_1", "content": [text("3")], "is_error": False},
            text("It is 3."),
        ],
    }
    question, thanks = ({"role": "user", "content": content} for content in ("1 + 2?", "Thanks."))
    client.answers("Welcome.")
    for path, body in ((COUNT, BODY), (MESSAGES, {**BODY, "max_tokens": 9})):
        response = await client.http.post(path, json={**body, "messages": [question, answer, thanks]})
        assert response.status_code == 200
    [call] = [call for call in client.api.calls if call.path == COUNT]
    assert call.body is not None
    counted, sent = call.body["messages"], client.api.requests[-1]["messages"]
    assert [message["role"] for message in counted] == ["user", "assistant", "user", "assistant", "user"]
    assert counted[1]["content"] == [{"type": "tool_use", **use, "name": "mcp__tools__add"}]
    assert counted[1:4] == sent[1:4]


async def test_a_name_of_claude_codes_is_counted_for_its_model(connect: Connect) -> None:
    """Without a process, counting starts one, which reports the model."""
    client = connect()
    await client.http.post(COUNT, json={**BODY, "model": "sonnet"})
    body = client.api.calls[-1].body
    assert body is not None
    assert str(body["model"]).startswith("claude-sonnet-")


async def test_the_apis_refusal_is_passed_on(client: Client) -> None:
    """MSG-30, MSG-187"""
    headers = {"retry-after": "3", "anthropic-organization-id": "r\xe9q"}
    client.api.fail_next(429, path=COUNT, headers=headers, message="too many")
    response = await client.http.post(COUNT, json=BODY)
    assert (response.status_code, response.headers["retry-after"]) == (429, "3")
    assert response.headers["anthropic-organization-id"] == "r\xe9q"
    assert response.json()["error"]["message"] == "too many"
    wrong = await client.http.post(COUNT, json={"model": "claude-sonnet-5"})
    assert (wrong.status_code, wrong.json()["error"]["type"]) == (400, "invalid_request_error")
    for content in (b"{", b"[" * 100_000):
        assert (await client.http.post(COUNT, content=content)).status_code == 400


async def test_without_an_api_key_it_is_refused_and_says_why(connect: Connect, shared_api: LoopbackServer) -> None:
    """MSG-09, MSG-28, MSG-R3: an estimate would look like a count."""
    client = connect(env={**shared_api.env(), "ANTHROPIC_API_KEY": "", "CLAUDE_CODE_OAUTH_TOKEN": "made-up"})
    response = await client.http.post(COUNT, json=BODY)
    assert (response.status_code, response.json()["error"]["type"]) == (404, "not_found_error")
    assert "ANTHROPIC_API_KEY" in response.json()["error"]["message"]
    assert not client.api.calls


@pytest.mark.parametrize("key", ["key\nsecret", "secret-ü"])
async def test_a_key_that_no_header_can_have_is_not_in_the_error(
    key: str, connect: Connect, shared_api: LoopbackServer
) -> None:
    """MSG-28"""
    client = connect(env={**shared_api.env(), "ANTHROPIC_API_KEY": key})
    response = await client.http.post(COUNT, json=BODY)
    assert (response.status_code, response.json()["error"]["type"]) == (400, "invalid_request_error")
    assert "cannot be sent" in response.text and "secret" not in response.text


async def test_an_api_that_cannot_be_reached_is_a_transport_error(connect: Connect, shared_api: LoopbackServer) -> None:
    client = connect(env={**shared_api.env(), "ANTHROPIC_BASE_URL": "http://127.0.0.1:9"})
    with pytest.raises(httpx2.ConnectError):
        await client.http.post(COUNT, json=BODY)


@pytest.mark.worlds
@pytest.mark.parametrize("login", [{}, {"ANTHROPIC_API_KEY": "", "ANTHROPIC_AUTH_TOKEN": "token"}])
async def test_a_password_in_the_address_is_sent_but_not_logged(
    connect: Connect, shared_api: LoopbackServer, caplog: pytest.LogCaptureFixture, login: dict[str, str]
) -> None:
    """MSG-28, SEC-06"""
    env = shared_api.env()
    env["ANTHROPIC_BASE_URL"] = shared_api.url.replace("://", "://us%40er:s3%3Acret@")
    client = connect(env={**env, **login})
    with caplog.at_level("DEBUG"):
        await client.http.post(COUNT, json=BODY)
        await client.ask("a")
    assert not any(secret in caplog.text for secret in ("s3:cret", "s3%3Acret"))
    counted, sent = (call.headers.get("authorization") for call in client.api.calls)
    assert counted == sent == ("Bearer token" if login else f"Basic {b64encode(b'us@er:s3:cret').decode()}")


def test_the_access_is_that_of_the_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "outer")
    access = APIAccess.of({})
    assert (access.url, access.headers) == ("https://api.anthropic.com", {"x-api-key": "outer"})
    assert "outer" not in repr(access)
    assert APIAccess.of({"ANTHROPIC_API_KEY": "own"}).headers == {"x-api-key": "own"}
    bearer = APIAccess.of({"ANTHROPIC_API_KEY": "", "ANTHROPIC_AUTH_TOKEN": "t", "ANTHROPIC_BASE_URL": "http://x"})
    assert (bearer.url, bearer.headers) == ("http://x", {"authorization": "Bearer t"})
    with pytest.raises(APIError, match="ANTHROPIC_API_KEY"):
        APIAccess.of({"CLAUDE_CODE_USE_BEDROCK": "1"})
