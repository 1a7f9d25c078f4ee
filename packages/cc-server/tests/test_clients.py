"""The clients' file is private, checked, and read again after changes."""

import logging
import os
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from cc_messages import ClaudeCodeTransport
from cc_server import create_app
from cc_server.clients import Client, ClientFile

KEY = {"ANTHROPIC_API_KEY": "sk-fake"}
TWO = f"""
[clients.alice]
token = "token-of-alice"
max_requests = 2
tokens_per_day = 1_000
dollars_per_day = 2.5

[clients.bob]
token_sha256 = "{sha256(b"token-of-bob").hexdigest()}"
access = "all"
"""


@pytest.fixture
def path(clients_file: Callable[[str], Path]) -> Path:
    return clients_file(TWO)


def read(path: Path) -> ClientFile:
    return ClientFile(path, lambda table: None)


def client_of(file: ClientFile, token: str) -> Client | None:
    return file.table().find([token.encode()])


def test_clients_are_found_by_their_tokens_stored_in_either_form(path: Path) -> None:
    """MSG-100"""
    file = read(path)
    alice, bob = client_of(file, "token-of-alice"), client_of(file, "token-of-bob")
    assert alice is not None and bob is not None
    assert (alice.name, alice.access, alice.max_requests) == ("alice", "messages", 2)
    assert (alice.tokens_per_day, alice.dollars_per_day) == (1000, 2.5)
    assert (bob.name, bob.access, bob.has_budget) == ("bob", "all", False)
    assert client_of(file, "token-of-carol") is None
    assert client_of(file, sha256(b"token-of-bob").hexdigest()) is None
    assert "token-of-alice" not in repr(file.table().clients) + str(alice.digest)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "there is no client"),
        ("[clients.a\n", "line 1"),
        ('[client.a]\ntoken = "secret-1"', "client: there is no such key; did you mean clients"),
        ('clients = "secret-1"', "clients: must be a table"),
        ('[clients]\na = "secret-1"', r"clients\.a: must be a table"),
        ('[clients."a b"]\ntoken = "secret-1"', "a b"),
        ("[clients.a]\nmax_requests = 1", r"clients\.a: needs either token or token_sha256"),
        ('[clients.a]\ntoken = "secret-1"\ntoken_sha256 = "secret-2"', "needs either"),
        ('[clients.a]\ntoken = "secret-é"', r"clients\.a\.token: .*ASCII"),
        ('[clients.a]\ntoken = ""', "ASCII"),
        ('[clients.a]\ntoken_sha256 = "secret-1"', "64 hexadecimal digits"),
        ('[clients.a]\ntoken = "secret-1"\ntoken_per_day = 3', "token_per_day: .*did you mean tokens_per_day"),
        ('[clients.a]\ntoken = "secret-1"\nmax_requests = 0', r"clients\.a\.max_requests: .*from 1 on, not 0"),
        ('[clients.a]\ntoken = "secret-1"\nmax_requests = true', "not True"),
        ('[clients.a]\ntoken = "secret-1"\ntokens_per_day = 1.5', r"not 1\.5"),
        ('[clients.a]\ntoken = "secret-1"\ndollars_per_day = "5"', "dollars_per_day: .*not '5'"),
        ('[clients.a]\ntoken = "secret-1"\ndollars_per_day = inf', "not inf"),
        ('[clients.a]\ntoken = "secret-1"\naccess = "root"', "one of messages, metrics, all, not 'root'"),
        ('[clients.a]\ntoken = "secret-1"\n[clients.b]\ntoken = "secret-1"', r"clients\.a and clients\.b .*same token"),
    ],
)
def test_an_invalid_file_is_refused_with_the_place_and_without_a_token(path: Path, text: str, complaint: str) -> None:
    """MSG-100"""
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=complaint) as refused:
        read(path)
    assert str(path) in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_file_unreadable_or_readable_by_others_is_refused(path: Path) -> None:
    """MSG-100"""
    for mode in (0o640, 0o604, 0o660):
        path.chmod(mode)
        with pytest.raises(ValueError, match=f"mode {mode:o}.*chmod 600"):
            read(path)
    path.chmod(0o600)
    path.write_bytes(b"\xff")
    with pytest.raises(ValueError, match=r"clients\.toml"):
        read(path)
    path.unlink()
    with pytest.raises(ValueError, match="No such file"):
        read(path)


def test_a_named_pipe_is_refused_without_waiting_for_its_writer(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """MSG-100, MSG-101: at the start, and instead of an earlier file."""
    if sys.platform == "win32":
        raise pytest.skip.Exception("needs named pipes")
    file = read(path)
    path.unlink()
    os.mkfifo(path, 0o600)
    assert client_of(file, "token-of-alice")
    assert "not a regular file" in caplog.text
    with pytest.raises(ValueError, match="not a regular file"):
        read(path)


def test_a_changed_file_holds_at_once_and_a_broken_one_never(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """MSG-101"""
    caplog.set_level(logging.WARNING)
    file = read(path)
    path.write_text('[clients.carol]\ntoken = "token-of-carol"', encoding="utf-8")
    assert client_of(file, "token-of-carol")
    assert not client_of(file, "token-of-alice")
    assert not caplog.records
    path.write_text("[clients.carol]\ntoken = 7", encoding="utf-8")
    for _ in range(3):
        assert client_of(file, "token-of-carol")
    [record] = caplog.records
    assert "clients stay as they were" in record.getMessage() and "clients.carol" in record.getMessage()
    assert "\n" not in record.getMessage() and record.exc_info is None
    caplog.clear()
    path.unlink()
    assert client_of(file, "token-of-carol")
    assert "No such file" in caplog.records[0].getMessage()
    path.touch(0o600)
    path.write_text(TWO, encoding="utf-8")
    assert client_of(file, "token-of-alice")
    path.chmod(0o644)
    assert client_of(file, "token-of-alice")
    assert "mode 644" in caplog.records[-1].getMessage()


def test_a_subscription_serves_its_owner_alone(path: Path) -> None:
    """MSG-102: at the start, and when a client is added later."""
    subscription = ClaudeCodeTransport(env={"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_OAUTH_TOKEN": "fake"})
    bearer = ClaudeCodeTransport(env={**KEY, "ANTHROPIC_AUTH_TOKEN": "sk-ant-oat01-fake"})
    for transport in (subscription, bearer):
        with pytest.raises(ValueError, match=r"subscription, which serves its owner alone.*2 clients \(alice, bob\)"):
            create_app(transport, clients=path)
    for env in (KEY, {"ANTHROPIC_AUTH_TOKEN": "fake"}, {"CLAUDE_CODE_USE_BEDROCK": "1"}):
        create_app(ClaudeCodeTransport(env=env), clients=path)
    owner = '[clients.me]\ntoken = "mine"\n[clients.prometheus]\ntoken = "its"\naccess = "metrics"\n'
    path.write_text(owner, encoding="utf-8")
    create_app(subscription, clients=path)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"token": "t"}, "either a token or a file"),
        ({"clients": None, "usage_store": "u"}, "give one with usage_s"),
    ],
)
def test_options_that_exclude_each_other_are_refused(path: Path, options: dict[str, Any], complaint: str) -> None:
    arguments: dict[str, Any] = {"clients": path, **options}
    with pytest.raises(ValueError, match=complaint):
        create_app(ClaudeCodeTransport(env=KEY), **arguments)
