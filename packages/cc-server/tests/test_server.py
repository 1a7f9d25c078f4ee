"""The server requires the token, applies its limits, and returns the transport's answers over HTTP."""

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator
from itertools import product
from pathlib import Path
from typing import Any

import httpx2
import pytest

import cc_messages
from cc_loopback import LoopbackServer
from cc_server import create_app
from warm_clients.api_data import BODY, MESSAGES, always
from warm_clients.client import Client
from warm_clients.fixtures import Connect, Processes
from warm_clients.waiting import eventually, wait_for_ever

from .conftest import Serve
from .served import Served


def error_of(response: httpx2.Response) -> tuple[int, str]:
    """Return an error's status and type, in the API's form."""
    body = response.json()
    assert body["type"] == "error"
    assert body.get("request_id") == response.headers.get("request-id")
    return response.status_code, body["error"]["type"]


async def test_a_message_is_answered_whole_and_streamed(served: Served) -> None:
    """MSG-20, MSG-23, MSG-40"""
    served.api.respond = always("Fine.")
    whole, streamed = await served.post(), await served.post(path=f"{MESSAGES}?beta=true", stream=True)
    assert whole.json()["content"] == [{"type": "text", "text": "Fine."}]
    assert whole.headers["content-type"] == "application/json"
    assert streamed.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert streamed.text.startswith("event: message_start\ndata: {")
    assert streamed.text.endswith('event: message_stop\ndata: {"type":"message_stop"}\n\n')
    for response in (whole, streamed):
        assert re.fullmatch(r"req_\w+", response.headers["request-id"])
    assert whole.headers["request-id"] != streamed.headers["request-id"]


async def test_the_apis_headers_are_passed_on(served: Served) -> None:
    """MSG-23, MSG-30: messages and streams have the request id, and the remaining limits."""
    headers = {"request-id": "req_of_the_api", "anthropic-ratelimit-requests-remaining": "7", "via": "a proxy"}
    for stream in (False, True):
        served.api.fail_next(headers=headers, delay=0.01)
        response = await served.post(stream=stream)
        assert response.status_code == 200
        assert {name: response.headers.get(name) for name in headers} == {**headers, "via": None}


async def test_without_the_token_nothing_is_answered_and_no_process_is_started(served: Served, client: Client) -> None:
    """MSG-42"""
    wrong: list[dict[str, str]] = [
        {},
        {"x-api-key": ""},
        {"x-api-key": "the"},
        {"x-api-key": "the tokené"},
        {"authorization": "the token"},
        {"authorization": "Basic the token"},
        {"authorization": "Bearer"},
        {"authorization": "Bearer wrong"},
        {"cookie": "the token"},
    ]
    async with httpx2.AsyncClient(base_url=served.url, trust_env=False) as http:
        for headers, path in product(wrong, (MESSAGES, f"{MESSAGES}?token=the+token", "/v1/models", "/", "/else")):
            raw = [(name.encode(), value.encode().strip()) for name, value in headers.items()]
            answered = error_of(await http.post(path, json=BODY, headers=raw))
            assert answered == (401, "authentication_error"), headers
    assert not client.starts


async def test_the_token_may_come_in_either_header(served: Served) -> None:
    """MSG-42: clients that send both headers have their own key in one."""
    right = [
        {"x-api-key": "the token"},
        {"authorization": "bearer  the token"},
        {"x-api-key": "sk-other", "authorization": "Bearer the token"},
    ]
    async with httpx2.AsyncClient(base_url=served.url, timeout=40, trust_env=False) as http:
        for headers in right:
            assert (await http.post(MESSAGES, json=BODY, headers=headers)).status_code == 200


async def test_the_token_goes_no_further(serve: Serve, several: Client) -> None:
    served = serve(several)
    async with served.http() as http:
        await http.post(MESSAGES, json=BODY, headers={"anthropic-beta": "made-up-2026-01-01"})
    [call] = served.api.calls
    assert "made-up-2026-01-01" in call.headers["anthropic-beta"]
    assert "the token" not in str(call)


async def test_whether_it_is_up_can_be_seen_without_the_token(served: Served, client: Client) -> None:
    """MSG-44"""
    async with httpx2.AsyncClient(base_url=served.url, trust_env=False) as http:
        health = await http.get("/healthz")
        assert (health.status_code, health.json()) == (200, {"status": "ok"})
        for path in ("/healthz", "/"):
            head = await http.head(path)
            assert (head.status_code, head.content) == (200, b"")
            assert "request-id" not in head.headers
    assert not client.starts


async def test_a_wrong_body_is_refused_in_the_form_of_the_api(served: Served, client: Client) -> None:
    """MSG-09"""
    async with served.http() as http:
        for content in (b"", b"{", b"[]", b"\xff", b'{"model": "m"}'):
            assert error_of(await http.post(MESSAGES, content=content)) == (400, "invalid_request_error")
        zipped = await http.post(MESSAGES, content=b"x", headers={"content-encoding": "gzip"})
        assert error_of(zipped) == (415, "invalid_request_error")
    assert not client.starts


@pytest.mark.parametrize("has_length", [True, False])
async def test_a_body_over_the_limit_is_refused_and_one_below_is_not(
    has_length: bool, serve: Serve, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MSG-43: the client sees the answer, although still sending."""
    # The wait if the piece above the limit was the last.
    monkeypatch.setattr("cc_server.http_server._DRAIN_SECONDS", 0.3)
    served = serve(client, max_body_bytes=1_000_000)

    async def pieces(length: int) -> AsyncIterator[bytes]:
        for _ in range(length // 10_000):
            yield b" " * 10_000

    async with served.http() as http:
        for length, status in ((990_000, 400), (1_010_000, 413), (3_000_000, 413)):
            content = b" " * length if has_length else pieces(length)
            response = await http.post(MESSAGES, content=content)
            assert response.status_code == status
        assert error_of(response) == (413, "request_too_large")
        assert "1000000" in response.json()["error"]["message"]


async def test_one_request_too_many_is_told_when_to_come_back(serve: Serve, several: Client) -> None:
    """MSG-43"""
    served = serve(several, max_requests=2)
    served.api.respond = wait_for_ever
    running = [asyncio.ensure_future(served.post()) for _ in range(2)]
    await eventually(lambda: len(served.api.requests) == 2)
    response = await served.post()
    assert error_of(response) == (429, "rate_limit_error")
    assert float(response.headers["retry-after"]) == 1
    async with served.http() as http:
        assert (await http.get("/healthz")).status_code == 200
    for task in running:
        task.cancel()
    served.api.respond = always("Fine.")
    await several.settled()
    assert (await served.post()).status_code == 200


async def test_a_client_that_leaves_ends_its_turn(
    served: Served, serve: Serve, client: Client, slow_client: Client
) -> None:
    """MSG-27: before the first event, and during a stream."""
    for stream in (False, True):
        served.api.respond = wait_for_ever
        task = asyncio.ensure_future(served.post(stream=stream))
        await eventually(lambda: served.transport.stats().busy == 1 and bool(served.api.requests))
        task.cancel()
        await client.settled()
        served.api.requests.clear()
    slow_client.answers("word " * 3000)
    slow = serve(slow_client)
    async with slow.http() as http, http.stream("POST", MESSAGES, json={**BODY, "stream": True}) as response:
        await anext(response.aiter_raw())
    await slow_client.settled()
    assert slow_client.transport.pids
    assert not slow_client.starts


async def test_a_client_that_closes_its_side_of_the_connection_has_left(served: Served, client: Client) -> None:
    """MSG-27: to the server, both directions look closed."""
    served.api.respond = wait_for_ever
    head = f"POST {MESSAGES} HTTP/1.1\r\nhost: x\r\nx-api-key: {served.token}\r\n"
    body = json.dumps(BODY)
    reader, writer = await asyncio.open_connection("127.0.0.1", int(served.url.rpartition(":")[2]))
    writer.write(f"{head}content-length: {len(body)}\r\n\r\n{body}".encode())
    await eventually(lambda: bool(served.api.requests))
    writer.write_eof()
    async with asyncio.timeout(20):
        assert await reader.read() == b""
    await client.settled()
    writer.close()


@pytest.mark.deaths
async def test_a_silent_model_is_bridged_by_pings(serve: Serve, slow_client: Client) -> None:
    served = serve(slow_client, ping_seconds=0.005)
    slow_client.answers("Hi.")
    text, whole = (await served.post(stream=True)).text, (await served.post()).json()
    ping = 'event: ping\ndata: {"type":"ping"}\n\n'
    assert text.count(ping) >= 4
    events = [line for line in text.replace(ping, "").split("\n") if line.startswith("event: ")]
    assert events[0] == "event: message_start"
    assert events[-1] == "event: message_stop"
    assert whole["content"][0]["text"] == "Hi."


async def test_an_answer_that_breaks_off_ends_with_an_error_event(serve: Serve, slow_client: Client) -> None:
    """MSG-33, MSG-E07"""
    # A slow API, since the CLI may lose data that arrives together with a connection error.
    slow_client.answers("word " * 60)
    served = serve(slow_client)
    served.api.fail_next(after_events=20)
    streamed = await served.post(stream=True)
    await slow_client.settled()  # or a request by the CLI itself could get the next fault
    served.api.fail_next(after_events=8)
    whole = await served.post()
    assert streamed.status_code == 200
    assert streamed.text.split("\n\n")[-2].startswith('event: error\ndata: {"type":"error","error":{"type":"api_error"')
    assert "message_stop" not in streamed.text
    assert error_of(whole) == (502, "api_error")


async def test_an_error_of_the_api_arrives_as_it_was(served: Served) -> None:
    """MSG-30, MSG-33"""
    kinds = {429: "rate_limit_error", 529: "overloaded_error", 401: "authentication_error"}
    for (status, kind), stream in product(kinds.items(), (False, True)):
        served.api.fail_next(status, message="made-up")
        response = await served.post(stream=stream)
        assert error_of(response) == (status, kind)
        assert response.json()["error"]["message"] == "made-up"


async def test_a_missing_cli_is_no_reason_to_try_again(serve: Serve, connect: Connect, tmp_path: Path) -> None:
    """MSG-E02"""
    program = tmp_path / "no-claude"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    server = serve(connect(cli_path=program))
    program.unlink()
    response = await server.post()
    assert error_of(response) == (500, "api_error")
    assert response.headers["x-should-retry"] == "false"
    assert "no-claude" in response.json()["error"]["message"]


async def test_a_slow_request_holds_nobody_up(serve: Serve, client: Client) -> None:
    served = serve(client, max_requests=2)
    host, port = served.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as slow:
        head = f"POST {MESSAGES} HTTP/1.1\r\nhost: x\r\nx-api-key: the token\r\ncontent-length: 99\r\n\r\n"
        slow.sendall(head.encode())
        assert (await served.post()).status_code == 200


def test_the_name_in_cc_messages_is_the_same_function() -> None:
    """MSG-40."""
    assert cc_messages.create_app is create_app


def test_an_application_without_a_token_makes_one_and_tells_it_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """MSG-42"""
    monkeypatch.delenv("CC_SERVER_TOKEN", raising=False)
    one, two = create_app(), create_app()
    printed = capsys.readouterr()
    assert one.state.token != two.state.token
    assert len(one.state.token) >= 32
    assert printed.err.count(one.state.token) == 1
    assert not printed.out
    monkeypatch.setenv("CC_SERVER_TOKEN", "from the environment")
    assert create_app().state.token == "from the environment"
    assert create_app(token="given").state.token == "given"
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "options",
    [{"token": ""}, {"token": "é"}, {"token": "a\nb"}, {"token": " a"}]
    + [{"token": "a", name: 0} for name in ("max_requests", "max_body_bytes", "ping_seconds")],
)
def test_an_application_that_nobody_could_use_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"token|positive"):
        create_app(**options)


async def test_shutting_an_application_down_ends_its_processes(
    shared_api: LoopbackServer, monkeypatch: pytest.MonkeyPatch, processes: Processes
) -> None:
    """MSG-40, MSG-45, ARCH-32: under any ASGI server."""
    for name, value in shared_api.env().items():
        monkeypatch.setenv(name, value)
    app = create_app(token="t")
    async with app.router.lifespan_context(app):
        asgi = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=asgi, base_url="http://x", headers={"x-api-key": "t"}) as http:
            assert (await http.post(MESSAGES, json=BODY, timeout=20)).status_code == 200
        assert processes()
    assert not processes()


async def test_behind_a_root_path_all_paths_are_served(client: Client) -> None:
    """MSG-188"""
    client.answers("Hi.")
    app = create_app(client.transport, token="t")
    transport = httpx2.ASGITransport(app, root_path="/claude")
    async with httpx2.AsyncClient(transport=transport, base_url="http://host", headers={"x-api-key": "t"}) as http:
        assert (await http.get("/claude/healthz")).status_code == 200
        for root in ("/claude", "", "/claude/gateway"):
            assert (await http.post(f"{root}/v1/messages", json=BODY)).status_code == 200
            assert (await http.get(f"{root}/v1/usage")).json()["client"]


async def test_the_server_tells_the_limits_to_clients_with_its_token(served: Served) -> None:
    """MSG-90"""
    windows = {"5h-utilization": "0.5", "7d-utilization": "0.3", "representative-claim": "five_hour"}
    headers = {"status": "allowed", "5h-status": "allowed", "7d-status": "allowed", **windows}
    served.api.fail_next(headers={f"anthropic-ratelimit-unified-{name}": headers[name] for name in headers}, delay=0)
    await served.post()
    async with served.http() as http:
        answer = (await http.get("/v1/limits")).json()
    assert [(window["kind"], window["utilization"]) for window in answer["rate_limits"]["windows"]] == [
        ("five_hour", 0.5),
        ("seven_day", 0.3),
    ]
    assert 0 <= answer["age_seconds"] < 20
    async with httpx2.AsyncClient(base_url=served.url, trust_env=False) as http:
        assert (await http.get("/v1/limits")).status_code == 401


async def test_the_server_refuses_the_same_values_and_passes_on_no_other_name(client: Client) -> None:
    """MSG-115: under any ASGI server, also without its own checks."""
    server = httpx2.ASGITransport(create_app(client.transport, token="t"))

    async def status(*headers: tuple[bytes, bytes]) -> int:
        request = httpx2.Request(
            "POST", f"http://server{MESSAGES}", json=BODY, headers=[(b"x-api-key", b"t"), *headers]
        )
        return (await server.handle_async_request(request)).status_code

    assert await status() == 200
    [first] = client.api.calls
    client.api.calls.clear()
    values = (b"1\nx-evil: 1", b"1\r\nx-evil: 1", b"\x00", b"1\x7f", "\u2028x-evil: 1".encode())
    for name, value in product((b"anthropic-beta", b"anthropic-version", b"traceparent", b"tracestate"), values):
        assert await status((name, value)) == 400, (name, value)
    assert not client.api.calls
    names = (b"x-evil", b"x-a\r\nx-evil", b"cookie", b"x-forwarded-for")
    assert await status(*((name, b"stolen") for name in names), *((b"x-mine", value) for value in values)) == 200
    [call] = client.api.calls
    assert call.headers.keys() - first.headers.keys() <= {"x-claude-code-session-id"}
