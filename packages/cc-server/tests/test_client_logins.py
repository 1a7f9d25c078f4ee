"""A server's clients can have separate logins: each request has its client's, and no process serves two."""

import asyncio
import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import psutil
import pytest

from cc_messages import ClaudeCodeTransport
from cc_server import create_app
from warm_clients.client import Client
from warm_clients.fixtures import Connect, MakeAPI
from warm_clients.waiting import eventually

from .conftest import Serve

KEY, TOKEN = "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"
FOUR = """
[logins.one]
ANTHROPIC_API_KEY = {{ variable = "KEY_ONE" }}
[logins.two]
ANTHROPIC_API_KEY = {{ file = "{folder}/key-two" }}
[logins.gateway]
ANTHROPIC_AUTH_TOKEN = "token-three"

[clients.alice]
token = "alice"
login = "one"
[clients.bert]
token = "bert"
login = "one"
[clients.carol]
token = "carol"
login = "two"
tokens_per_day = 1_000_000
[clients.dora]
token = "dora"
login = "gateway"
[clients.eve]
token = "eve"
[clients.prometheus]
token = "prometheus"
access = "metrics"
"""
KEYS = {
    "alice": ("key-one", None),
    "bert": ("key-one", None),
    "carol": ("key-two", None),
    "dora": (None, "Bearer token-three"),
}

WriteClients = Callable[[str], Path]


@pytest.fixture
def path(clients_file: WriteClients, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KEY_ONE", "key-one")
    secret = tmp_path / "key-two"
    secret.touch(0o600)
    secret.write_text("key-two\n", encoding="utf-8")
    return clients_file(FOUR.format(folder=tmp_path.as_posix()))


def replace(path: Path, before: str, after: str) -> None:
    path.write_text(path.read_text("utf-8").replace(before, after), encoding="utf-8")


def keys(client: Client) -> list[tuple[str | None, str | None]]:
    return [(call.headers.get("x-api-key"), call.headers.get("authorization")) for call in client.api.calls]


async def test_each_request_has_its_clients_key_and_no_process_is_shared(
    path: Path, connect: Connect, serve: Serve
) -> None:
    """MSG-160, MSG-161: no process has the server's own key, or the variable with another login's."""
    client = connect(size=6)
    served = serve(client, clients=path)
    before = len(client.api.calls)
    names = [*KEYS] * 4
    answers = await asyncio.gather(
        *(served.post(token=name, stream=index % 2 == 0) for index, name in enumerate(names))
    )
    assert {answer.status_code for answer in answers} == {200}
    requests = keys(client)[before:]
    assert sorted(requests, key=str) == sorted((KEYS[name] for name in names), key=str)
    environments = [psutil.Process(pid).environ() for pid in client.transport.pids]
    logins = {(env[KEY], env[TOKEN]) for env in environments}
    assert logins <= {("key-one", ""), ("key-two", ""), ("", "token-three")}
    assert {env["KEY_ONE"] for env in environments} == {""}
    before = len(client.api.calls)
    for name in names:
        await served.post(token=name)
        assert keys(client)[before:] == [KEYS[name]]
        before += 1


async def test_a_client_without_a_login_is_refused(path: Path, connect: Connect, serve: Serve) -> None:
    """MSG-161"""
    client = connect(size=1)
    served = serve(client, clients=path)
    before = len(client.api.calls)
    for stream in (False, True):
        refused = await served.post(token="eve", stream=stream)
        assert (refused.status_code, refused.json()["error"]["type"]) == (403, "permission_error")
        assert "The client eve has no login" in refused.json()["error"]["message"]
    async with served.http(token="eve") as http:
        assert (await http.get("/v1/models")).status_code == 403
        assert (await http.get("/v1/usage")).status_code == 200
    async with served.http(token="prometheus") as http:
        assert (await http.get("/metrics")).status_code == 200
    replace(path, "\nlogin = ", "\n# login = ")
    assert (await served.post(token="alice")).status_code == 403  # not the server's own login, when no client has one
    assert len(client.api.calls) == before and not client.transport.pids


@pytest.mark.worlds
async def test_a_changed_key_holds_from_the_next_request_on(path: Path, connect: Connect, serve: Serve) -> None:
    """MSG-101, MSG-160"""
    client = connect(size=2)
    served = serve(client, clients=path)
    await served.post(token="dora")
    replace(path, "token-three", "token-four")
    await served.post(token="dora")
    assert keys(client)[-2:] == [(None, "Bearer token-three"), (None, "Bearer token-four")]


@pytest.mark.worlds
async def test_a_login_that_leaves_the_file_ends_with_its_last_request(
    path: Path, connect: Connect, serve: Serve, make_api: MakeAPI
) -> None:
    """MSG-185: its idle process at once; without a further request, and without a trace of the secret."""
    open_questions = {"Short?", "Long?"}

    async def respond(body: dict[str, Any]) -> str:
        question = body["messages"][0]["content"]
        await eventually(lambda: question not in open_questions)
        return "Done."

    client = connect(api=make_api(respond), size=3)
    served = serve(client, clients=path)

    def ask(token: str, question: str) -> asyncio.Task[Any]:
        messages = [{"role": "user", "content": question}]
        return asyncio.create_task(served.post(token=token, messages=messages))

    def logins() -> list[str]:
        environments = [psutil.Process(pid).environ() for pid in client.transport.pids]
        return sorted(env[KEY] or env[TOKEN] for env in environments)

    assert (await ask("alice", "Now?")).status_code == 200
    short, long = ask("dora", "Short?"), ask("dora", "Long?")
    await eventually(lambda: len(client.api.requests) == 3)
    assert logins() == ["key-one", "token-three", "token-three"]
    open_questions.remove("Short?")
    assert (await short).status_code == 200
    replace(path, 'ANTHROPIC_AUTH_TOKEN = "token-three"', 'ANTHROPIC_AUTH_TOKEN = "token-four"')
    await eventually(lambda: len(client.transport.pids) == 2)
    assert logins() == ["key-one", "token-three"]
    open_questions.remove("Long?")
    assert (await long).json()["content"][0]["text"] == "Done."
    await eventually(lambda: len(client.transport.pids) == 1)
    assert logins() == ["key-one"]
    del short, long

    def is_kept() -> bool:
        gc.collect()
        environments = (cast("dict[object, object]", item) for item in gc.get_objects() if type(item) is dict)
        return any(env.get(TOKEN) == "token-three" for env in environments)

    await eventually(lambda: not is_kept())  # the process's tools are looked for after its end
    assert (await ask("dora", "Now?")).status_code == 200
    assert logins() == ["key-one", "token-four"]


def test_only_the_login_of_a_transport_by_with_login_can_end() -> None:
    """MSG-185"""
    with pytest.raises(ValueError, match="close this transport with aclose"):
        ClaudeCodeTransport(env={KEY: "sk-fake"}).end_login()


@pytest.mark.parametrize(
    ("login", "complaint"),
    [
        (
            '{ variable = "NO_SUCH_KEY" }',
            r"logins\.one\.ANTHROPIC_API_KEY: there is no environment variable NO_SUCH_KEY",
        ),
        ('{ file = "/no/such/file" }', r"logins\.one\.ANTHROPIC_API_KEY: .*/no/such/file"),
        ('{ value = "secret-1" }', r"logins\.one\.ANTHROPIC_API_KEY: must be a text, .*variable.*file"),
        ('""', r"login of clients\.a must be an API key, a gateway or a cloud provider"),
        ('"secret\\u0000"', r"logins\.one\.'ANTHROPIC_API_KEY': .* no NUL character"),
        ('""\n"A=B" = "secret-1"', r"logins\.one\.'A=B': a variable has a name without '='"),
        ('""\nANTHROPIC_AUTH_TOKEN = "sk-ant-oat01-secret"', "must be an API key"),
        ('""\nCLAUDE_CODE_OAUTH_TOKEN = "secret-1"', "must be an API key"),
    ],
)
def test_an_unusable_login_is_an_error_at_the_start(login: str, complaint: str, clients_file: WriteClients) -> None:
    """MSG-162: with the place, and without a value; a subscription is refused."""
    path = clients_file(f'[logins.one]\nANTHROPIC_API_KEY = {login}\n[clients.a]\ntoken = "a"\nlogin = "one"\n')
    with pytest.raises(ValueError, match=complaint) as refused:
        create_app(ClaudeCodeTransport(env={KEY: "sk-fake"}), clients=path)
    assert "secret" not in str(refused.value)


def test_a_login_that_others_can_read_or_a_missing_login_is_refused(clients_file: WriteClients, tmp_path: Path) -> None:
    """MSG-162"""
    secret = tmp_path / "key"
    secret.write_text("secret-1", encoding="utf-8")
    text = f'[logins.one]\n{KEY} = {{ file = "{secret.as_posix()}" }}\n[clients.a]\ntoken = "a"\nlogin = "%s"\n'
    if os.name == "posix":
        secret.chmod(0o640)
        with pytest.raises(ValueError, match=r"ANTHROPIC_API_KEY: other users have access to it \(mode 640\)"):
            create_app(clients=clients_file(text % "one"))
    secret.chmod(0o600)
    with pytest.raises(ValueError, match=r"clients\.a\.login: must be the name of a table in logins, not 'two'"):
        create_app(clients=clients_file(text % "two"))
    create_app(clients=clients_file(text % "one"))
