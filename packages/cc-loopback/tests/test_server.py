"""The server's lifecycle: start, stop, threads, environment."""

import asyncio
import gc
import json
import logging
import os
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anthropic import Anthropic, AsyncAnthropic, OverloadedError
from anthropic.types import MessageParam
from starlette.types import Receive, Scope, Send

from cc_loopback import Login, LoopbackServer, ServerStateError
from cc_loopback.thread import ServerThread

from .conftest import BODY, PROMPT, Connect, Serve, ask

# Stops a server in the middle of a stream; prints the numbers of threads and descriptors before, meanwhile and after.
LEFTOVERS = """
import gc, httpx2, json, os, threading
from cc_loopback import LoopbackServer

def count():
    gc.collect()
    return {{"threads": threading.active_count(), "descriptors": len(os.listdir("/proc/self/fd"))}}

counts = [count()]
server = LoopbackServer(lambda body: "word " * 64, event_delay=0.05).start()
try:
    with httpx2.stream("POST", f"{{server.url}}/v1/messages", json={body!r}) as streaming:
        chunks = streaming.iter_raw()
        next(chunks)
        counts.append(count())
        server.stop()
        list(chunks)
except httpx2.RemoteProtocolError:
    counts.append(count())
print(json.dumps(counts))
"""


def open_request(server: LoopbackServer, body: dict[str, Any]) -> socket.socket:
    """Send a raw request, and leave the connection open without reading."""
    port = int(server.url.rpartition(":")[2])
    connection = socket.create_connection(("127.0.0.1", port), timeout=5)
    request = httpx2.Request("POST", f"{server.url}/v1/messages", json=body)
    head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    connection.sendall(f"POST /v1/messages HTTP/1.1\r\n{head}\r\n".encode() + request.content)
    return connection


def peer_of(connection: socket.socket) -> object:
    """Return the address at the other end, or None if the socket is not connected."""
    try:
        return connection.getpeername()
    except OSError:
        return None


def join_server_threads() -> None:
    """Wait for servers that still end after a test, so that the next test does not count them."""
    for thread in threading.enumerate():
        if thread.name == "cc-loopback":
            thread.join(5)


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
    join_server_threads()


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


@pytest.mark.parametrize(
    ("login", "own"),
    [
        ("api-key", {"ANTHROPIC_API_KEY"}),
        ("oauth", {"CLAUDE_CODE_OAUTH_TOKEN"}),
        ("vertex", {"CLAUDE_CODE_USE_VERTEX"}),
        ("bedrock", {"CLAUDE_CODE_USE_BEDROCK"}),
    ],
)
def test_environment_has_one_login_and_empties_all_others(serve: Serve, login: Login, own: set[str]) -> None:
    """LOOP-09."""
    server = serve(None)
    env = server.env(login)
    logins = {name for name in env if name.startswith("CLAUDE_CODE_USE_") or name.endswith(("KEY", "TOKEN", "HEADERS"))}
    assert {name for name in logins if env[name]} == own
    assert logins == {name for name in server.env() if name in logins}
    assert "AWS_BEARER_TOKEN_BEDROCK" in env
    assert {value for value in env.values() if value.startswith("http")} <= {server.url, f"{server.url}/v1"}


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


def test_answer_on_a_reused_connection_does_not_wait_for_an_acknowledgement(serve: Serve) -> None:
    with open_request(serve(lambda body: "one two three"), BODY) as connection:
        assert connection.recv(100)
        ours = connection.getsockname()
        sockets = [item for item in gc.get_objects() if type(item) is socket.socket and item.fileno() >= 0]
        [accepted] = [sock for sock in sockets if peer_of(sock) == ours]
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


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


def test_responder_runs_in_the_thread_of_the_server_and_can_be_replaced(serve: Serve, connect: Connect) -> None:
    threads: list[threading.Thread] = []

    def note_thread(body: dict[str, Any]) -> str:
        threads.append(threading.current_thread())
        return "fine"

    server = serve(None)
    server.respond = note_thread
    assert server.respond is note_thread
    connect(server).messages.create(model="m", max_tokens=9, messages=PROMPT)
    assert [thread.name for thread in threads] == ["cc-loopback"]


def test_event_delay_spreads_a_stream_over_time() -> None:
    """LOOP-32."""
    with LoopbackServer(lambda body: "one two", event_delay=0.01) as server:
        begin = time.monotonic()
        response = httpx2.post(f"{server.url}/v1/messages", json={**BODY, "stream": True})
        assert response.text.count("event: ") == 8
        assert time.monotonic() - begin > 0.08


def test_client_that_disconnects_cancels_the_responder(serve: Serve) -> None:
    started, cancelled = threading.Event(), threading.Event()

    async def respond(body: dict[str, Any]) -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return "never"

    with open_request(serve(respond), BODY):
        assert started.wait(5)
    assert cancelled.wait(5)


def test_client_that_disconnects_within_its_body_leaves_no_call(fine: LoopbackServer) -> None:
    port = int(fine.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
    assert httpx2.post(f"{fine.url}/v1/messages", json=BODY).status_code == 200
    assert len(fine.calls) == 1


def test_stop_waits_for_no_stream_and_no_delayed_request() -> None:
    started = threading.Event()

    async def respond(body: dict[str, Any]) -> str:
        if body.get("stream"):
            return "word " * 64
        started.set()
        await asyncio.Event().wait()
        return "never"

    # A stop that takes longer than two seconds raises an error.
    server = LoopbackServer(respond, event_delay=0.2).start()
    with open_request(server, {**BODY, "stream": True}) as streaming, open_request(server, BODY):
        assert streaming.recv(100)
        assert started.wait(5)
        server.stop()


def test_stop_waits_for_no_client_that_stops_reading() -> None:
    text = "x" * 10_000_000
    server = LoopbackServer(lambda body: text).start()
    with open_request(server, BODY) as whole, open_request(server, {**BODY, "stream": True}) as streaming:
        assert whole.recv(100) and streaming.recv(100)
        server.stop()


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
    join_server_threads()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts file descriptors in /proc")
def test_no_thread_descriptor_or_warning_remains() -> None:
    """LOOP-01: in a fresh interpreter, where nothing else opens and closes files."""
    command = [sys.executable, "-W", "always", "-c", LEFTOVERS.format(body={**BODY, "stream": True})]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    before, during, after = json.loads(done.stdout)
    assert during["threads"] > before["threads"] and during["descriptors"] > before["descriptors"]
    assert after == before


def test_uvicorn_logs_nothing_for_faults_and_cut_requests(
    fine: LoopbackServer, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    fine.fail_next(after_events=1)
    with pytest.raises(httpx2.RemoteProtocolError):
        httpx2.post(f"{fine.url}/v1/messages", json={**BODY, "stream": True})
    with open_request(fine, BODY) as odd:
        odd.sendall(b"no http\r\n\r\n")
    httpx2.get(fine.url)
    fine.stop()
    assert [record.name for record in caplog.records if record.name.startswith("uvicorn")] == []
    assert capfd.readouterr() == ("", "")
    logging.getLogger("uvicorn.error").debug("heard again")
    assert "heard again" in caplog.text
