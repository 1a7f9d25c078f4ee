"""`python -m cc_messages serve` says where it listens, and leaves nothing when it ends."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from anthropic import Anthropic, AuthenticationError

from cc_loopback import LoopbackServer
from cc_messages import command_line

if TYPE_CHECKING:
    from pathlib import Path

MODEL = "claude-sonnet-5"
HELLO: Any = [{"role": "user", "content": "Hello."}]
SERVE = [sys.executable, "-W", "error", "-m", "cc_messages", "serve", "--port", "0"]


class Command:
    """The command in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        self.url = self._value("ANTHROPIC_BASE_URL", process.stdout.readline())

    def token(self) -> str:
        assert self.process.stdout is not None
        return self._value("ANTHROPIC_API_KEY", self.process.stdout.readline())

    def client(self, token: str) -> Anthropic:
        return Anthropic(base_url=self.url, api_key=token, max_retries=0)

    def ends(self, seconds: float = 15) -> tuple[int, str, str]:
        """Exit code, and what else was printed."""
        out, err = self.process.communicate(timeout=seconds)
        return self.process.returncode, out, err

    @staticmethod
    def _value(name: str, line: str) -> str:
        found = re.fullmatch(rf"export {name}=(\S+)\n", line)
        assert found is not None, line
        return found[1]


@contextmanager
def serving(env: dict[str, str], *arguments: str) -> Generator[Command]:
    environment = {**os.environ, **env}
    with subprocess.Popen(
        [*SERVE, *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    ) as process:
        try:
            yield Command(process)
        finally:
            process.kill()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_a_signal_and_leaves_nothing(number: signal.Signals, loopback: LoopbackServer) -> None:
    """MSG-40, MSG-41, MSG-42, MSG-45."""

    def respond(_: object) -> str:
        return "Good day."

    loopback.respond = respond
    with serving(loopback.env()) as command:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", command.url)
        token = command.token()
        with command.client(token) as claude:
            message = claude.messages.create(model=MODEL, max_tokens=9, messages=HELLO)
            assert message.content[0].to_dict() == {"type": "text", "text": "Good day."}
        with command.client("wrong") as claude, pytest.raises(AuthenticationError):
            claude.messages.create(model=MODEL, max_tokens=9, messages=HELLO)
        family = psutil.Process(command.process.pid).children(recursive=True)
        assert family
        command.process.send_signal(number)
        assert command.ends() == (0, "", "")
        assert not [child for child in family if child.is_running()]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_running_answers_end_before_it_does(number: signal.Signals) -> None:
    """MSG-45. Also when the signal is a terminal's, which sends it to the processes of Claude Code as well."""
    with LoopbackServer(lambda body: "word " * 60, event_delay=0.03) as slow, serving(slow.env()) as command:
        with command.client(command.token()) as claude:
            with claude.messages.stream(model=MODEL, max_tokens=99, messages=HELLO) as stream:
                texts = stream.text_stream
                first = next(texts)
                if number is signal.SIGINT:
                    os.killpg(command.process.pid, number)
                else:
                    command.process.send_signal(number)
                assert first + "".join(texts) == "word " * 60
        assert command.ends() == (0, "", "")


def test_a_running_answer_has_only_so_much_time(loopback: LoopbackServer) -> None:
    """MSG-45."""
    with LoopbackServer(lambda body: "word " * 600, event_delay=0.05) as slow:
        with serving(slow.env(), "--grace-seconds", "1") as command:
            with command.client(command.token()) as claude:
                with claude.messages.stream(model=MODEL, max_tokens=99, messages=HELLO) as stream:
                    next(stream.text_stream)
                    family = psutil.Process(command.process.pid).children(recursive=True)
                    command.process.terminate()
                    code, out, _ = command.ends()
            assert (code, out) == (0, "")
            assert not [child for child in family if child.is_running()]


def test_a_second_signal_ends_it_at_once(loopback: LoopbackServer) -> None:
    """MSG-45."""
    with LoopbackServer(lambda body: "word " * 600, event_delay=0.05) as slow, serving(slow.env()) as command:
        with command.client(command.token()) as claude:
            with claude.messages.stream(model=MODEL, max_tokens=99, messages=HELLO) as stream:
                next(stream.text_stream)
                family = psutil.Process(command.process.pid).children(recursive=True)
                for _ in range(2):
                    command.process.send_signal(signal.SIGINT)
                    time.sleep(0.3)
                assert command.ends(8)[0] == 0
        assert not [child for child in family if child.is_running()]


def test_the_token_of_a_file_or_of_the_environment_is_not_printed(loopback: LoopbackServer, tmp_path: Path) -> None:
    """MSG-42."""
    file = tmp_path / "token"
    file.touch(0o600)
    file.write_text("from-a-file\n")
    with serving({**loopback.env(), "CC_MESSAGES_TOKEN": ""}) as command:
        assert len(command.token()) >= 32
    env = {**loopback.env(), "CC_MESSAGES_TOKEN": "from-the-environment"}
    for arguments, token in (((), "from-the-environment"), (("--token-file", str(file)), "from-a-file")):
        with serving(env, *arguments) as command:
            with command.client(token) as claude:
                claude.messages.create(model=MODEL, max_tokens=9, messages=HELLO)
            command.process.terminate()
            assert command.ends() == (0, "", "")


def test_help_names_all_that_there_is() -> None:
    for arguments in (["--help"], ["serve", "--help"]):
        done = subprocess.run(
            [sys.executable, "-m", "cc_messages", *arguments], capture_output=True, text=True, timeout=20
        )
        assert (done.returncode, done.stderr) == (0, "")
    for word in ("ANTHROPIC_BASE_URL", "CC_MESSAGES_TOKEN", "--token-file", "--port", "Ctrl-C"):
        assert word in done.stdout


@pytest.fixture
def no_server(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Whatever a command would serve, it does not."""
    served: list[str] = []

    def run(work: Any) -> None:
        work.close()
        served.append("served")

    monkeypatch.setattr("asyncio.run", run)
    monkeypatch.delenv("CC_MESSAGES_TOKEN", raising=False)
    return served


def test_a_token_file_that_cannot_be_used_is_refused(
    tmp_path: Path, no_server: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").write_text(" \n")
    (tmp_path / "binary").write_bytes(b"\xff")
    for name, word in (("none", "none"), ("empty", "no token"), ("binary", "cannot be read")):
        assert command_line.main(["serve", "--port", "0", "--token-file", str(tmp_path / name)]) == 1
        assert word in capsys.readouterr().err
    assert not no_server


def test_a_token_that_others_can_read_is_warned_of(
    tmp_path: Path, no_server: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "token"
    file.write_text("secret")
    for mode, is_told in ((0o644, True), (0o600, False)):
        file.chmod(mode)
        assert command_line.main(["serve", "--port", "0", "--token-file", str(file)]) == 0
        told = capsys.readouterr()
        assert ("warning" in told.err) == is_told
        assert "secret" not in told.err + told.out
    assert len(no_server) == 2


@pytest.mark.parametrize(("host", "is_told"), [("127.0.0.1", False), ("localhost", False), ("0.0.0.0", True)])
def test_an_address_that_others_can_reach_is_warned_of(
    host: str, is_told: bool, no_server: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """MSG-41."""
    assert command_line.main(["serve", "--port", "0", "--host", host]) == 0
    assert ("reached from other machines" in capsys.readouterr().err) == is_told


def test_an_address_where_it_cannot_listen_is_refused(no_server: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert command_line.main(["serve", "--port", port]) == 1
        assert f"port {port}" in capsys.readouterr().err
    for wrong in ("70000", "-1", "x"):
        with pytest.raises(SystemExit):
            command_line.main(["serve", "--port", wrong])
        assert "--port" in capsys.readouterr().err
    assert command_line.main(["serve", "--host", "no.such.host.invalid"]) == 1
    assert "no.such.host.invalid" in capsys.readouterr().err
    assert command_line.main(["serve", "--size", "0"]) == 1
    assert not no_server


def test_a_server_does_not_become_its_own_client(
    no_server: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    for address, code in ((f"http://localhost:{port}", 1), (f"http://[bad:{port}", 0), ("https://example.com", 0)):
        monkeypatch.setenv("ANTHROPIC_BASE_URL", address)
        assert command_line.main(["serve", "--port", port]) == code
    assert "this server itself" in capsys.readouterr().err
    assert len(no_server) == 2


@pytest.mark.parametrize("missing", ["starlette.applications", "uvicorn"])
def test_what_is_not_installed_is_named(missing: str) -> None:
    """MSG-40. The package itself is imported without it."""
    program = f"""
import sys
from cc_messages import command_line
sys.modules["{missing}"] = None
sys.exit(command_line.main(["serve", "--port", "0"]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stdout) == (1, "")
    assert "pip install 'cc-messages[server]'" in done.stderr


def test_the_command_runs_where_it_is_called(loopback: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own signal handlers are gone when it has ended."""
    for name, value in loopback.env().items():
        monkeypatch.setenv(name, value)
    before = signal.getsignal(signal.SIGTERM)
    timer = threading.Timer(1.5, signal.raise_signal, [signal.SIGTERM])
    timer.start()
    assert command_line.main(["serve", "--port", "0"]) == 0
    timer.join()
    assert signal.getsignal(signal.SIGTERM) is before
