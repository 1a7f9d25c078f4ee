"""The server's lifecycle: start, stop, threads, environment."""

import asyncio
import os
import socket
import stat
import threading
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anthropic import Anthropic, AsyncAnthropic, OverloadedError
from anthropic.types import MessageParam
from starlette.types import Receive, Scope, Send

from cc_loopback import LoopbackServer, ServerStateError
from cc_loopback.thread import ServerThread

from .conftest import BODY, Connect, Serve, ask


def open_request(server: LoopbackServer, body: dict[str, Any]) -> socket.socket:
    """Send a raw request, and leave the connection open without reading."""
    port = int(server.url.rpartition(":")[2])
    connection = socket.create_connection(("127.0.0.1", port), timeout=5)
    request = httpx2.Request("POST", f"{server.url}/v1/messages", json=body)
    head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    connection.sendall(f"POST /v1/messages HTTP/1.1\r\n{head}\r\n".encode() + request.content)
    return connection


async def test_port_is_free_again_after_the_run() -> None:
    """LOOP-01, LOOP-02."""
    async with LoopbackServer() as first:
        port = int(first.url.rpartition(":")[2])
        with pytest.raises(OSError), LoopbackServer(port=port):
            pass
    async with LoopbackServer(port=port) as second:
        assert second.url == f"http://127.0.0.1:{port}"


def test_servers_side_by_side_share_nothing(serve: Serve, connect: Connect) -> None:
    """LOOP-02, LOOP-06."""
    servers = [serve(lambda body: "one"), serve(lambda body: "two")]
    assert [server.url.rpartition(":")[0] for server in servers] == ["http://127.0.0.1"] * 2
    assert servers[0].url != servers[1].url
    servers[0].fail_next(status=529)
    clients = [connect(server) for server in servers]
    with pytest.raises(OverloadedError):
        ask(clients[0])
    answers = [ask(client).content[0] for client in clients]
    assert [answer.to_dict()["text"] for answer in answers] == ["one", "two"]
    assert [len(server.requests) for server in servers] == [2, 1]
    assert servers[0].env()["HOME"] != servers[1].env()["HOME"]


def test_server_runs_once_and_has_no_url_and_no_environment_before() -> None:
    server = LoopbackServer()
    assert repr(server) == "<LoopbackServer not running, 0 calls>"
    with pytest.raises(ServerStateError, match="not running"):
        print(server.url)
    with pytest.raises(ServerStateError, match="not running"):
        server.env()
    with server:
        assert repr(server) == f"<LoopbackServer {server.url}, 0 calls>"
    server.stop()
    with pytest.raises(ServerStateError, match="only once"):
        server.start()


def test_start_that_fails_in_the_thread_is_an_error_with_the_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(self: object, sockets: object) -> None:
        raise RuntimeError("no loop today")

    monkeypatch.setattr("uvicorn.Server.serve", fail)
    with pytest.raises(ServerStateError, match="ended before it served") as caught:
        LoopbackServer().start()
    assert str(caught.value.__cause__) == "no loop today"


@pytest.mark.deaths
def test_start_that_takes_too_long_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(self: object, sockets: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr("uvicorn.Server.serve", hang)
    monkeypatch.setattr("uvicorn.Server.servers", [], raising=False)
    monkeypatch.setattr("cc_loopback.thread._START_TIMEOUT", 0.05)
    with pytest.raises(ServerStateError, match=r"within 0\.05 s"):
        LoopbackServer().start()


def test_thread_that_never_started_stops_at_once() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise NotImplementedError

    ServerThread(app, 0).stop()


@pytest.mark.parametrize(("user", "sandbox"), [(0, "1"), (1000, None)])
def test_environment_directs_the_cli_to_the_server_and_gives_root_a_sandbox(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, user: int, sandbox: str | None
) -> None:
    """LOOP-03."""
    monkeypatch.setattr(os, "geteuid", lambda: user)
    server = serve(None)
    env = server.env()
    assert env.get("IS_SANDBOX") == sandbox
    assert env["ANTHROPIC_BASE_URL"] == server.url
    assert env["ANTHROPIC_API_KEY"]
    assert env["ANTHROPIC_AUTH_TOKEN"] == env["CLAUDE_CODE_OAUTH_TOKEN"] == ""
    assert env["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] == "1"
    assert env["NO_PROXY"] == env["no_proxy"] == "127.0.0.1"


def test_private_folder_is_private_and_removed_after_the_run() -> None:
    """LOOP-03."""
    with LoopbackServer() as server:
        env = server.env()
        assert env == server.env()
        folders = [Path(env[name]) for name in ("HOME", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_TMPDIR")]
        for folder in [*folders, folders[0].parent]:
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folders[1] / "session.jsonl").write_text("x", encoding="utf-8")
    assert not folders[0].parent.exists()


async def test_server_answers_while_the_test_blocks_its_own_loop() -> None:
    async with LoopbackServer(lambda body: "fine") as server:
        with Anthropic(base_url=server.url, api_key="key", max_retries=0) as client:
            assert ask(client).content


async def test_fifty_requests_at_once_get_their_own_answers() -> None:
    """LOOP-07."""
    everyone = asyncio.Event()
    waiting = 0

    async def respond(body: dict[str, Any]) -> str:
        nonlocal waiting
        waiting += 1
        if waiting == 50:
            everyone.set()
        await everyone.wait()
        return f"Hello {body['messages'][0]['content']}"

    async def ask(client: AsyncAnthropic, number: int) -> str:
        prompt: list[MessageParam] = [{"role": "user", "content": str(number)}]
        async with client.messages.stream(model="m", max_tokens=9, messages=prompt) as stream:
            return await stream.get_final_text()

    async with (
        LoopbackServer(respond) as server,
        AsyncAnthropic(base_url=server.url, api_key="key", max_retries=0, timeout=20) as client,
    ):
        answers = await asyncio.gather(*(ask(client, number) for number in range(50)))
    assert answers == [f"Hello {number}" for number in range(50)]
    assert len(server.requests) == 50


def test_client_that_disconnects_within_its_body_leaves_no_call(fine: LoopbackServer) -> None:
    port = int(fine.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
    assert httpx2.post(f"{fine.url}/v1/messages", json=BODY).status_code == 200
    assert len(fine.calls) == 1


@pytest.mark.deaths
def test_stop_reports_a_responder_that_blocks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cc_loopback.thread._STOP_TIMEOUT", 0.05)
    entered, release = threading.Event(), threading.Event()

    def respond(body: dict[str, Any]) -> str:
        entered.set()
        release.wait(5)
        return "late"

    server = LoopbackServer(respond).start()
    folder = Path(server.env()["HOME"])
    with open_request(server, BODY):
        assert entered.wait(5)
        with pytest.raises(ServerStateError, match="responder still blocks"):
            server.stop()
        release.set()
    assert not folder.exists()
