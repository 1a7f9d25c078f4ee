"""Tests of the files for a service: their steps run, as an unprivileged user, and the server answers."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING

import psutil
import pytest

from cc_messages.server.client_file import parse_clients
from container_file import Stage, Step, build, missing, parse
from workspace import ROOT

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from cc_loopback import LoopbackServer

DEPLOY = ROOT / "deploy"
PORT = "8400"
TOKEN = "token-of-alice"
CLIENTS = f"""
[clients.alice]
token_sha256 = "{sha256(TOKEN.encode()).hexdigest()}"
tokens_per_day = 1
access = "all"
"""


def test_steps_of_a_container_file_are_read_and_unknown_ones_refused() -> None:
    text = "# a comment\nFROM x AS y\nRUN one \\\n    two\n\nEXPOSE 1\nUSER u\n"
    assert [*parse(text)] == [Step("FROM", "x AS y"), Step("RUN", "one      two"), Step("USER", "u")]
    with pytest.raises(ValueError, match="ADD http"):
        list(parse("ADD http://x /\n"))


def test_the_files_of_a_service_fit_together() -> None:
    """MSG-107. User, ports, paths and arguments are the same in all of them, and no login is in the image."""
    steps = [*parse((DEPLOY / "Dockerfile").read_text("utf-8"))]
    last = {step.instruction: step for step in steps}
    assert last["USER"].rest not in ("root", "0")
    arguments = last["CMD"].words
    compose = (DEPLOY / "compose.yaml").read_text("utf-8")
    unit = (DEPLOY / "cc-messages.service").read_text("utf-8")
    for text in (compose, unit):
        assert "ANTHROPIC_API_KEY=…" in text  # in a comment alone
        assert text.count("ANTHROPIC_API_KEY") == 1
    assert f"127.0.0.1:{PORT}:{PORT}" in compose
    assert "uid=10001" in compose and "--uid 10001" in (DEPLOY / "Dockerfile").read_text("utf-8")
    for option, path in zip(arguments[::2], arguments[1::2], strict=True):
        if option != "--host":
            assert f"{option} {path}" in unit
            assert path.rpartition("/")[0] in compose
    example = parse_clients(tomllib.loads((DEPLOY / "clients.example.toml").read_text("utf-8")))
    assert [client.name for client in example.clients] == ["alice", "nightly-report", "prometheus"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_systemd_accepts_the_unit_and_finds_it_confined(tmp_path: Path) -> None:
    """MSG-107."""
    text = (DEPLOY / "cc-messages.service").read_text("utf-8")
    unit = tmp_path / "cc-messages.service"
    unit.write_text(text.replace("/opt/cc-messages/bin/cc-messages", sys.executable), encoding="utf-8")
    verified = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    # The exposure of a service without any protection is 96 of 100.
    arguments = ["systemd-analyze", "security", "--offline=true", "--threshold=20", unit]
    confined = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert (verified.returncode, verified.stderr) == (0, "")
    assert confined.returncode == 0, confined.stdout


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_the_steps_of_the_container_file_give_a_server_of_an_unprivileged_user(
    loopback: LoopbackServer, tmp_path: Path
) -> None:
    """MSG-107. It is healthy, answers, counts in its volume, and ends in peace."""
    assert sys.platform != "win32"  # where a step is missing
    port = free_port()
    text = (DEPLOY / "Dockerfile").read_text("utf-8").replace(PORT, port)
    stage = build(text, ROOT, tmp_path / "stages")
    clients = tmp_path / "clients.toml"
    clients.write_text(CLIENTS, encoding="utf-8")
    stage.outside(
        f"install -D -m 0600 -o 10001 -g 10001 '{clients}' '{{root}}/etc/cc-messages/clients.toml' && "
        "chown 10001 '{root}/etc/cc-messages'"
    )
    login = {name: value for name, value in loopback.env().items() if name.startswith("ANTHROPIC_")}
    with running(stage, login) as process:
        wait_until_healthy(stage, process)
        assert [ask(port, "wrong")[0], ask(port, TOKEN)[0], ask(port, TOKEN)[0]] == [401, 200, 429]
        family = psutil.Process(process.pid).children(recursive=True)
        names = {child.name(): child.uids().real for child in family}
        assert names["tini"] == names["cc-messages"] == names["claude"] == 10001
        os.kill(next(child.pid for child in family if child.name() == "tini"), signal.SIGTERM)
        assert process.communicate(timeout=60) == (f"export ANTHROPIC_BASE_URL=http://0.0.0.0:{port}\n", None)
        assert not [child for child in family if child.is_running()]
    usage = stage.files / "var/lib/cc-messages/usage.sqlite"
    assert (usage.stat().st_mode & 0o777, usage.stat().st_uid) == (0o600, 10001)


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return str(free.getsockname()[1])


@contextmanager
def running(stage: Stage, login: dict[str, str]) -> Generator[subprocess.Popen[str]]:
    command = stage.command([*stage.entrypoint, *stage.arguments], login)
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_until_healthy(stage: Stage, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while subprocess.run(stage.command(stage.health), capture_output=True, check=False).returncode:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.2)


def ask(port: str, token: str) -> tuple[int, str]:
    body = {"model": "claude-sonnet-5", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello."}]}
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
    connection.request("POST", "/v1/messages", json.dumps(body), {"x-api-key": token})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text
