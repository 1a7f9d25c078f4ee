"""Runs recorded against a loopback API, and replayed without it."""

import contextlib
import json
import re
import socket
from collections.abc import Callable, Generator, Iterable, Mapping
from datetime import date
from itertools import count, repeat
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anthropic import Anthropic, APIStatusError

from cc_loopback import Cassette, CassetteError, JsonObject, LoopbackServer, RecordMode, Reply, Respond, UpstreamError

KEY = "sk-ant-api03-a-very-secret-key"
GATEWAY = "token-of-the-gateway-0123"
COOKIE = "cookie-value-0123456789"
SESSION = "81799321-587c-4724-a7af-111260ba8285"
ACCOUNT = "0b1c2d3e-0000-4724-a7af-111260ba8285"
DEVICE = "8ebfd74d14b1a562b4a8774011e29f07626459644305743e5ec183adfb8cb3b3"
USER = json.dumps({"device_id": DEVICE, "account_uuid": ACCOUNT, "session_id": SESSION})
SECRETS = (KEY, GATEWAY, COOKIE, SESSION, ACCOUNT, DEVICE)
HEADERS = {
    "x-api-key": KEY,
    "authorization": f"Bearer {GATEWAY}",
    "cookie": f"session={COOKIE}",
    "x-claude-code-session-id": SESSION,
}


def body_of(text: str, **others: Any) -> JsonObject:
    return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}], **others}


# `verify=False`: loading certificates takes 100 ms.
def post(server: LoopbackServer, text: str = "Hello", **others: Any) -> httpx2.Response:
    return post_raw(server, body_of(text, **others), path="/v1/messages?beta=true")


def post_raw(
    server: LoopbackServer, body: JsonObject, headers: Mapping[str, str] = HEADERS, path: str = "/v1/messages"
) -> httpx2.Response:
    return httpx2.post(f"{server.url}{path}", json=body, headers=headers, verify=False)


def get(server: LoopbackServer, path: str) -> httpx2.Response:
    return httpx2.get(f"{server.url}{path}", headers=HEADERS, verify=False)


@contextlib.contextmanager
def streamed(server: LoopbackServer) -> Generator[httpx2.Response]:
    body = body_of("Hello", stream=True)
    with httpx2.stream("POST", f"{server.url}/v1/messages", json=body, verify=False) as response:
        yield response


def text_of(response: httpx2.Response) -> str:
    return response.json()["content"][0]["text"]


def replying(replies: Iterable[Reply]) -> Respond:
    """Return a responder that gives these replies, one after another."""
    remaining = iter(replies)
    return lambda body: next(remaining)


def using(path: Path, record: RecordMode = "none", **settings: Any) -> LoopbackServer:
    return LoopbackServer(cassette=Cassette(path, record, **settings))


def record(path: Path, *texts: str, mode: RecordMode = "once") -> None:
    with using(path, mode) as server:
        for text in texts:
            post(server, text)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cassettes" / "one.json"


@pytest.fixture
def upstream(serve: Callable[[Respond | None], LoopbackServer], monkeypatch: pytest.MonkeyPatch) -> LoopbackServer:
    server = serve(replying(f"Answer {number}" for number in count(1)))
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"{server.url}/")
    return server


@pytest.mark.parametrize("stream", [True, False])
def test_a_recorded_run_replays_byte_for_byte(path: Path, upstream: LoopbackServer, stream: bool) -> None:
    """LOOP-50, LOOP-51, LOOP-53: the upstream, the recording and the replay have the same bytes and types."""
    tool = {"name": "price", "input_schema": {"type": "object", "properties": {"article": {"type": "string"}}}}
    answers: list[Reply] = [
        {"id": "msg_1", "content": "Grüße, \u2028 and \N{GRINNING FACE}"},
        {"id": "msg_2", "content": [{"type": "tool_use", "id": "t", "name": "price", "input": {"article": "a\nb"}}]},
        {"id": "msg_3", "content": [{"type": "thinking", "thinking": "Hm. " * 20, "signature": "s="}]},
    ]

    upstream.respond = replying(answers * 2)
    requests: list[dict[str, Any]] = [
        {"text": "0 \u2028 \N{GRINNING FACE}", "metadata": {"user_id": USER}, "stream": stream},
        {"text": "1", "tools": [tool], "stream": stream},
        {"text": "2", "stream": stream},
    ]
    direct = [post(upstream, **request) for request in requests]
    with using(path, "once") as server:
        recorded = [post(server, **request) for request in requests]
        assert server.requests == upstream.requests[3:] == upstream.requests[:3]
    with using(path) as server:
        replayed = [post(server, **request) for request in requests]
    assert [call.headers["x-api-key"] for call in upstream.calls] == [KEY] * 6
    assert len({response.content for response in replayed}) == 3
    for responses in zip(direct, recorded, replayed, strict=True):
        assert len({(response.content, response.headers["content-type"]) for response in responses}) == 1
        assert responses[1].headers["request-id"] == responses[2].headers["request-id"]


def test_no_credential_and_no_id_is_in_the_cassette(path: Path, upstream: LoopbackServer) -> None:
    """LOOP-55: neither those of headers and metadata, nor where a text or an error repeats them."""
    leak = f"env: {KEY} {GATEWAY} {SESSION}"
    call = {"type": "tool_use", "name": "bash", "input": {"command": f"curl {KEY} {DEVICE}"}}
    upstream.respond = replying(repeat([call]))
    upstream.fail_next(429, message=f"This would exceed the limit of your organization ({ACCOUNT}).")
    with using(path, "rewrite") as server:
        get(server, f"/v1/models?limit=1&key={KEY}")
        for stream in (False, True):
            post(server, leak, stream=stream, metadata={"user_id": USER}, tools=[{"name": "bash"}])
    assert str(upstream.requests[-1]).count(KEY) == 1
    cassette = path.read_text("utf-8")
    assert [secret for secret in SECRETS if secret in cassette] == []
    assert re.findall(r"req_\w+", cassette) == ["req_removed"]
    assert '"query": {"limit": "1"}' in cassette
    with using(path) as server:
        fragments = [
            event["delta"]["partial_json"]
            for line in post(server, leak, stream=True, tools=[{"name": "bash"}]).iter_lines()
            if line.startswith("data: ") and "partial_json" in (event := json.loads(line[6:])).get("delta", {})
        ]
    assert json.loads("".join(fragments)) == {"command": "curl <removed> <removed>"}


def test_ids_and_the_version_of_the_cli_may_differ(path: Path, upstream: LoopbackServer) -> None:
    """LOOP-52."""
    billing = "x-anthropic-billing-header: cc_version=2.1.329.3c4; cc_entrypoint=sdk-py;"
    own = {"type": "text", "text": f"Session {SESSION}."}
    system = [{"type": "text", "text": billing}, own]
    with using(path, "once") as server:
        post(server, system=system, metadata={"user_id": USER})
    other = str(system).replace("2.1.329", "2.1.400").replace(SESSION, ACCOUNT)
    with using(path) as server:
        body = {**body_of("Hello", system=json.loads(other.replace("'", '"')))}
        headers = {"x-claude-code-session-id": ACCOUNT}
        response = post_raw(server, dict(reversed(body.items())), headers)
    assert text_of(response) == "Answer 1"


def test_a_changed_request_fails_with_its_difference(path: Path, upstream: LoopbackServer) -> None:
    """LOOP-56: the client gets the difference to the most similar request, and so does the test."""
    text = "You sell kettles.\nBe brief.\nNever guess."
    record(path, "Something else", text)
    with using(path) as server, Anthropic(base_url=server.url, api_key="any", max_retries=3) as client:
        with pytest.raises(APIStatusError) as caught:
            client.messages.create(
                model="m", max_tokens=9, messages=[{"role": "user", "content": text.replace("brief", "polite")}]
            )
        (error,) = server.errors
    assert isinstance(error, CassetteError)
    assert caught.value.response.json()["error"]["message"] == str(error)
    assert re.match(rf"POST /v1/messages is not in the cassette {path}; .* differs:\n--- recorded\n", str(error))
    changes = [line.strip() for line in str(error).splitlines() if line.startswith(("+ ", "- "))]
    assert changes == ["-          Be brief.", "+          Be polite."]


def test_a_request_that_comes_too_often_fails(path: Path, upstream: LoopbackServer) -> None:
    """LOOP-56."""
    record(path, "Hello")
    with using(path) as server:
        assert [post(server).status_code for _ in range(2)] == [200, 424]
        assert "came 2 times with the same content, but" in str(server.errors)
        # A path without a recorded request has nothing to compare.
        post_raw(server, body_of("Hello"), HEADERS, "/v1/messages/count_tokens")
        assert "no request to that path" in str(server.errors[-1])


@pytest.mark.parametrize(
    ("mode", "texts", "in_the_file"),
    [
        ("none", ["Answer 1", "Answer 2", ""], ["Answer 1", "Answer 2"]),
        ("once", ["Answer 1", "Answer 2", ""], ["Answer 1", "Answer 2"]),
        ("new_episodes", ["Answer 1", "Answer 2", "Answer 3"], ["Answer 1", "Answer 2", "Answer 3"]),
        ("all", ["Answer 3", "Answer 4", "Answer 5"], ["Kept", "Answer 3", "Answer 4", "Answer 5"]),
        ("rewrite", ["Answer 3", "Answer 4", "Answer 5"], ["Answer 3", "Answer 4", "Answer 5"]),
    ],
)
def test_the_modes_are_those_of_vcr(
    path: Path, upstream: LoopbackServer, mode: RecordMode, texts: list[str], in_the_file: list[str]
) -> None:
    """LOOP-57."""
    record(path, "first", "second")
    if mode == "all":
        upstream.respond, numbers = replying(repeat("Kept")), upstream.respond
        record(path, "of another test", mode="new_episodes")
        upstream.respond = numbers
    with using(path, mode) as server:
        responses = [post(server, prompt) for prompt in ("first", "second", "third")]
        assert bool(server.errors) == ("" in texts)
    assert [text_of(response) if response.status_code == 200 else "" for response in responses] == texts
    episodes = json.loads(path.read_text("utf-8"))["episodes"]
    assert [episode["response"]["body"]["content"][0]["text"] for episode in episodes] == in_the_file


def test_a_missing_or_invalid_cassette_is_an_error_at_the_start(path: Path) -> None:
    """LOOP-57, LOOP-58."""
    with pytest.raises(CassetteError, match=r"there is no cassette .*one\.json; record it with the mode `once`"):
        using(path).start()
    path.parent.mkdir()
    for content, problem in (
        ("{", "is not a cassette .JSONDecodeError"),
        ("[]", "is not a cassette"),
        ('{"format": 9}', "format 9 is unknown"),
    ):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(CassetteError, match=problem):
            using(path).start()
    with pytest.raises(CassetteError, match="cannot read"):
        using(path.parent).start()
    with pytest.raises(CassetteError, match=r"record must be one of none, once, .*, not 'alle'"):
        using(path, "alle").start()  # pyright: ignore[reportArgumentType]
    with pytest.raises(CassetteError, match=r"'\(', a pattern to scrub, is not a regular expression"):
        using(path, "rewrite", scrub={"(": ""}).start()
    for url in ("api.example.com", "ftp://example.com", "http://", "http://example.com:port"):
        with pytest.raises(CassetteError, match="base URL of the API to record"):
            using(path, "rewrite", upstream=url).start()
    with pytest.raises(ValueError, match="not with both"):
        LoopbackServer(lambda body: "", cassette=Cassette(path))


def test_an_upstream_that_does_not_answer_is_named_without_its_password(path: Path) -> None:
    """LOOP-55, LOOP-58."""
    with socket.socket() as unused:  # bound, so that no other process listens there
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with using(path, "once", upstream=f"http://me:secret@127.0.0.1:{port}") as server:
            response = post(server)
            (error,) = server.errors
    assert response.status_code == 424
    assert isinstance(error, UpstreamError)
    assert str(error).startswith(f"no answer from http://127.0.0.1:{port}, the API to record: ConnectError")
    assert "secret" not in response.text
    assert not path.exists()


@pytest.mark.parametrize("stream", [True, False])
def test_a_cassette_that_cannot_be_written_is_an_error(path: Path, upstream: LoopbackServer, stream: bool) -> None:
    """LOOP-58."""
    path.parent.write_text("no folder", encoding="utf-8")
    with using(path, "rewrite") as server:
        with contextlib.suppress(httpx2.RemoteProtocolError):
            assert post(server, stream=stream).status_code == 424
        assert [str(error) for error in server.errors] == [f"cannot write the cassette {path}: File exists"]


def test_a_stream_that_breaks_off_is_replayed_so(path: Path, upstream: LoopbackServer) -> None:
    """LOOP-54."""
    upstream.fail_next(after_events=3)
    bodies: list[bytes] = []
    for mode in ("once", "none"):
        bodies.append(b"")
        with using(path, mode) as server:
            with pytest.raises(httpx2.RemoteProtocolError), streamed(server) as response:
                for data in response.iter_bytes():
                    bodies[-1] += data
    assert bodies[0] == bodies[1]
    assert bodies[0].count(b"event:") == 3


def test_a_client_that_leaves_a_stream_leaves_a_cut_recording(path: Path) -> None:
    """LOOP-54."""
    with (
        LoopbackServer(lambda body: "word " * 50, event_delay=0.02) as slow,
        using(path, "once", upstream=slow.url) as server,
        streamed(server) as response,
    ):
        next(response.iter_bytes())
    (episode,) = json.loads(path.read_text("utf-8"))["episodes"]
    assert episode["response"]["cut"] is True
    assert 0 < len(episode["response"]["events"]) < 50


def test_the_date_of_a_request_moves_with_the_days(path: Path, upstream: LoopbackServer) -> None:
    """LOOP-52: today's date stands for the day of the recording; other dates are content."""
    today = date.today().isoformat()
    record(path, f"Today is {today}, Christmas is 2026-12-24.")
    path.write_text(path.read_text("utf-8").replace(today, "2020-02-02"), encoding="utf-8")
    with using(path) as server:
        assert post(server, f"Today is {today}, Christmas is 2026-12-25.").status_code == 424
        assert '+        content: "Today is 2020-02-02, Christmas is 2026-12-25."' in str(server.errors)
        assert text_of(post(server, f"Today is {today}, Christmas is 2026-12-24.")) == "Answer 1"


def test_requests_to_other_paths_are_passed_on_but_never_kept(path: Path, upstream: LoopbackServer) -> None:
    """LOOP-51."""
    with using(path, "once") as server:
        assert get(server, "/api/oauth/profile?x=1").status_code == 404
        post(server)
    assert [(call.path, dict(call.query)) for call in upstream.calls][0] == ("/api/oauth/profile", {"x": "1"})
    assert "profile" not in path.read_text("utf-8")
    with using(path) as server:
        assert get(server, "/api/oauth/profile").status_code == 404
        assert server.errors == []


def test_faults_come_before_recorded_answers(path: Path, upstream: LoopbackServer) -> None:
    """LOOP-30, LOOP-53."""
    record(path, "Hello")
    with using(path) as server:
        server.fail_next(429)
        assert [post(server).status_code for _ in range(2)] == [429, 200]
        with pytest.raises(ValueError, match="after_events is for scripted answers"):
            server.fail_next(after_events=1)


def test_the_environment_has_the_login_of_the_user_only_while_it_records(
    path: Path, upstream: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LOOP-59."""
    with using(path, "once") as server:
        variables = server.env()
        assert variables["ANTHROPIC_BASE_URL"] == server.url
        # The login is in the user's config folder, or in a variable, which stays as it is.
        assert {"ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "HOME", "CLAUDE_CONFIG_DIR"} & set(variables) == set()
        monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-mine")
        assert "CLAUDE_CODE_OAUTH_TOKEN" not in server.env()
        assert Path(server.env()["CLAUDE_CONFIG_DIR"]).is_dir()
        monkeypatch.setenv("CLAUDE_CODE_USE_VERTEX", "1")
        with pytest.raises(CassetteError, match="unset CLAUDE_CODE_USE_VERTEX"):
            server.env()
        post_raw(server, body_of("Hello"), {"authorization": "Bearer sk-ant-oat01-mine"})
    with using(path) as server:
        assert server.env()["CLAUDE_CODE_OAUTH_TOKEN"] == "sk-ant-oat01-loopback"
        assert server.env("api-key")["CLAUDE_CODE_OAUTH_TOKEN"] == ""
