"""The command `python -m cc_loopback`, in this process and in another."""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from cc_loopback import LoopbackServer
from cc_loopback.__main__ import main

BODY = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}], "stream": True}


def leave_signals(number: int, handler: object) -> None:
    """Replacement for `signal.signal`, so that pytest keeps the handlers."""


@contextmanager
def running(*arguments: str) -> Generator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "cc_loopback", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8")
    with process:
        try:
            yield process
            process.terminate()
            process.wait(timeout=10)
        finally:
            process.kill()


def read_exports(process: subprocess.Popen[str], last: str) -> dict[str, str]:
    """Read the output at the start, up to the last variable."""
    assert process.stdout is not None
    assert re.fullmatch(r"# cc-loopback listens on http://127\.0\.0\.1:\d+\n", process.stdout.readline())
    variables: dict[str, str] = {}
    while last not in variables:
        word, assignment = shlex.split(process.stdout.readline())
        assert word == "export"
        name, _, value = assignment.partition("=")
        variables[name] = value
    return variables


def test_port_in_use_is_reported(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signal.signal", leave_signals)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["--port", port]) == 1
    output, errors = capsys.readouterr()
    assert output == ""
    assert errors.startswith(f"cc-loopback: cannot listen on port {port}: ")


@pytest.mark.parametrize("port", ["-1", "65536", "http", "9" * 5000])
def test_a_port_that_cannot_be_is_refused(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([f"--port={port}"])
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert "argument --port" in error and "_port" not in error


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_server_serves_until_a_signal_and_exits_cleanly(number: signal.Signals) -> None:
    """LOOP-41."""
    with running() as process:
        variables = read_exports(process, "ANTHROPIC_API_KEY")
        response = httpx2.post(f"{variables['ANTHROPIC_BASE_URL']}/v1/messages", json=BODY)
        assert response.status_code == 200
        process.send_signal(number)
        rest, errors = process.communicate(timeout=10)
    assert (process.returncode, rest, errors) == (0, "", "")


def test_the_full_environment_can_be_sourced_and_its_folder_is_removed(tmp_path: Path) -> None:
    with running("--print-env") as process:
        variables = read_exports(process, "no_proxy")
        assert Path(variables["CLAUDE_CONFIG_DIR"]).is_dir()
        assert variables["ANTHROPIC_AUTH_TOKEN"] == ""
        script = tmp_path / "environment"
        lines = [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
        script.write_text("\n".join(lines), encoding="utf-8")
        shell = ["sh", "-c", f". {shlex.quote(str(script))} && printenv ANTHROPIC_BASE_URL"]
        run = subprocess.run(shell, capture_output=True, text=True, timeout=10, check=True, env=dict(os.environ))
        process.terminate()
        process.communicate(timeout=10)
    assert run.stdout.strip() == variables["ANTHROPIC_BASE_URL"]
    assert not Path(variables["HOME"]).parent.exists()


ASK = """if True:
    import os, sys, httpx2
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": sys.argv[1]}]}
    url, key = os.environ["ANTHROPIC_BASE_URL"], os.environ["ANTHROPIC_API_KEY"]
    with httpx2.Client(verify=False) as http:
        print(http.post(url + "/v1/messages", json=body, headers={"x-api-key": key}).json()["content"])
"""


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr("signal.signal", leave_signals)
    return ["--", sys.executable, "-c", ASK]


def test_a_command_is_recorded_and_replayed(
    tmp_path: Path, command: list[str], loopback: LoopbackServer, capfd: pytest.CaptureFixture[str]
) -> None:
    """LOOP-61."""
    path = str(tmp_path / "agent.json")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("ANTHROPIC_BASE_URL", loopback.url)
        environment.setenv("ANTHROPIC_API_KEY", "sk-ant-api03-0123456789")
        assert main(["record", path, "--scrub", "at [0-9]+", "now", *command, "It is at 12"]) == 0
    assert [call.headers["x-api-key"] for call in loopback.calls] == ["sk-ant-api03-0123456789"]
    assert main(["replay", path, "--scrub", "at [0-9]+", "now", *command, "It is at 13"]) == 0
    recorded, replayed = capfd.readouterr().out.splitlines()
    assert recorded == replayed == """[{'type': 'text', 'text': 'You said: "It is now".'}]"""
    assert len(loopback.calls) == 1
    assert main(["replay", path, *command, "Another prompt"]) == 1
    errors = capfd.readouterr().err
    assert "cc-loopback: POST /v1/messages is not in the cassette" in errors
    assert '+        content: "Another prompt"' in errors


def test_problems_of_a_cassette_or_a_command_are_reported_in_one_line(
    tmp_path: Path, command: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    """LOOP-61."""
    path = str(tmp_path / "agent.json")
    assert main(["replay", path, *command]) == 1
    assert main(["record", path, "--", "no-such-program"]) == 127
    assert main(["record", path, "--", sys.executable, "-c", "raise SystemExit(3)"]) == 3
    assert main(["record", path, "--", "sh", "-c", "kill -TERM $$"]) == 143
    with pytest.raises(SystemExit) as ended:
        main(command)
    assert ended.value.code == 2
    lines = capfd.readouterr().err.splitlines()
    assert lines[0] == f"cc-loopback: there is no cassette {path}; record it with the mode `once`"
    assert lines[1] == "cc-loopback: cannot start no-such-program: No such file or directory"
    assert lines[2:4] == [f"cc-loopback: {sys.executable} sent no request", "cc-loopback: sh sent no request"]
    assert lines[-1] == "cc-loopback: error: a command after -- needs `record` or `replay`"
