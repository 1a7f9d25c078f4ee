"""`cc-server` prints the address, and leaves nothing at the end."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest
from anthropic import Anthropic, APIError, AuthenticationError

from cc_loopback import LoopbackServer
from cc_server import command_line
from warm_clients.api_data import MODEL, always
from warm_clients.fixtures import MakeAPI, Processes

pytestmark = pytest.mark.worlds

HELLO: Any = [{"role": "user", "content": "Hello."}]
SERVE = [sys.executable, "-W", "error", "-m", "cc_server", "--port", "0"]


class Command:
    """The command in a new process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        self.url = self._value("ANTHROPIC_BASE_URL", process.stdout.readline())

    def token(self) -> str:
        assert self.process.stdout is not None
        return self._value("ANTHROPIC_API_KEY", self.process.stdout.readline())

    def client(self, token: str) -> Anthropic:
        return Anthropic(base_url=self.url, api_key=token, max_retries=0)

    def ends(self, seconds: float = 30) -> tuple[int, str, str]:
        """Return the exit code, and the remaining output."""
        out, err = self.process.communicate(timeout=seconds)
        return self.process.returncode, out, err

    @staticmethod
    def _value(name: str, line: str) -> str:
        match = re.fullmatch(rf"export {name}=(\S+)\n", line)
        assert match is not None, line
        return match[1]


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
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def answered(claude: Anthropic) -> str:
    block = claude.messages.create(model=MODEL, max_tokens=9, messages=HELLO).content[0]
    return block.text if block.type == "text" else ""


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_it_serves_until_a_signal_and_leaves_nothing(number: signal.Signals, make_api: MakeAPI) -> None:
    """MSG-40, MSG-41, MSG-42, MSG-45: a running answer ends before the server, also in a terminal."""
    if sys.platform == "win32":
        raise pytest.skip.Exception("needs POSIX")
    slow = make_api(always("Good day."), event_delay=0.02)
    with serving({**slow.env(), "CC_SERVER_TOKEN": ""}) as command:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", command.url)
        token = command.token()
        assert len(token) >= 32
        with command.client("wrong") as claude, pytest.raises(AuthenticationError):
            answered(claude)
        with command.client(token) as claude:
            assert answered(claude) == "Good day."
            slow.respond = always("word " * 40)
            with claude.messages.stream(model=MODEL, max_tokens=99, messages=HELLO) as stream:
                texts = stream.text_stream
                first = next(texts)
                family = psutil.Process(command.process.pid).children(recursive=True)
                assert family
                if number is signal.SIGINT:
                    os.killpg(command.process.pid, number)
                else:
                    command.process.send_signal(number)
                assert first + "".join(texts) == "word " * 40
        assert command.ends() == (0, "", "")
        assert not [child for child in family if child.is_running()]


def test_a_missing_login_is_warned_of(
    serve: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """MSG-124: the CLI says whether it has a login; it is not asked if the environment has one."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    assert serve("--port", "0")[2] == ""
    assert not (tmp_path / "claude").exists()
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    code, _, errors = serve("--port", "0")
    assert (code, errors.count("\n")) == (0, 1)
    assert "warning: Claude Code is not logged in. Set ANTHROPIC_API_KEY, or run" in errors
    silent = tmp_path / "cli"
    silent.write_text("#!/bin/sh\necho text\n")
    silent.chmod(0o700)
    assert serve("--port", "0", "--cli-path", silent)[2] == ""
    assert "was not found at" in serve("--port", "0", "--cli-path", tmp_path / "none")[2]
    monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-fake")
    assert serve("--port", "0")[2] == ""


def test_the_token_of_a_file_is_used_and_not_printed(shared_api: LoopbackServer, tmp_path: Path) -> None:
    """MSG-42: the option wins over the environment."""
    file = tmp_path / "token"
    file.touch(0o600)
    file.write_text("from-a-file\n")
    env = {**shared_api.env(), "CC_SERVER_TOKEN": "from-the-environment"}
    with serving(env, "--token-file", str(file)) as command:
        address = ("127.0.0.1", int(command.url.rpartition(":")[2]))
        silent = [socket.create_connection(address, 20) for _ in range(101)]
        assert silent[0].recv(1) == b""  # MSG-80: the oldest makes way
        for connection in silent:
            connection.close()
        with command.client("from-a-file") as claude:
            assert answered(claude)
        command.process.terminate()
        assert command.ends() == (0, "", "")


Serve = Callable[..., tuple[int, str, str]]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Serve:
    """Run the command without serving; return exit code, output, and errors."""

    def close(work: Coroutine[Any, Any, None]) -> None:
        work.close()

    monkeypatch.setattr("asyncio.run", close)
    monkeypatch.delenv("CC_SERVER_TOKEN", raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-fake")

    def run(*arguments: object) -> tuple[int, str, str]:
        code = command_line.main([*map(str, arguments)])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def test_clients_that_cannot_be_served_are_refused_at_the_start(
    clients_file: Callable[[str], Path], serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MSG-100, MSG-102"""
    path = clients_file('[clients.alice]\ntoken = "of-alice"\n[clients.bob]\ntoken = "of-bob"\n')
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    options = ["--port", "0", "--clients", path]
    for arguments, complaint in (
        (options, "the login is a subscription, which serves its owner alone"),
        ([*options, "--token-file", path], "either --token-file or --clients"),
        ([*options, "--usage-store", path / "u"], "the login is a subscription"),
        (["--clients", path.with_name("none")], "No such file"),
    ):
        code, output, errors = serve(*arguments)
        assert (code, output, errors.count("\n")) == (1, "", 1)
        assert errors.startswith("cc-server: ") and complaint in errors
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-fake")
    code, output, _ = serve(*options)
    assert (code, output.count("export")) == (0, 1)


def is_refused(url: str) -> bool:
    host, port = url.removeprefix("http://").split(":")
    try:
        socket.create_connection((host, int(port))).close()
    except ConnectionRefusedError:
        return True
    return False


def ends_in_time(url: str) -> None:
    signal.raise_signal(signal.SIGTERM)


def ends_at_once(url: str, number: signal.Signals = signal.SIGINT) -> None:
    signal.raise_signal(number)
    wait_until(lambda: is_refused(url))
    signal.raise_signal(number)


@pytest.mark.parametrize(
    ("act", "grace"),
    [(ends_in_time, "1"), (ends_at_once, "3000"), (partial(ends_at_once, number=signal.SIGTERM), "3000")],
)
def test_a_running_answer_is_cut_by_a_deadline_or_second_signal(
    act: Callable[[str], None],
    grace: str,
    make_api: MakeAPI,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    processes: Processes,
) -> None:
    """MSG-42, MSG-45: in this process, where no signal handlers and no processes remain."""
    slow = make_api(always("word " * 3000), event_delay=0.03)
    for name, value in {**slow.env(), "CC_SERVER_TOKEN": "from-the-environment"}.items():
        monkeypatch.setenv(name, value)
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    printed = ""

    def is_told() -> bool:
        nonlocal printed
        printed += capsys.readouterr().out
        return printed.endswith("\n")

    def use() -> None:
        wait_until(is_told)
        url = printed.partition("=")[2].strip()
        with Anthropic(base_url=url, api_key="from-the-environment", max_retries=0) as claude:
            with claude.messages.stream(model=MODEL, max_tokens=99, messages=HELLO) as stream:
                next(stream.text_stream)
                assert [process.environ().get("CC_SERVER_TOKEN") for process in processes()] == [None]
                act(url)
                with pytest.raises((APIError, httpx2.TransportError)):
                    stream.until_done()

    with ThreadPoolExecutor(1) as threads:
        used = threads.submit(use)
        assert command_line.main(["--port", "0", "--grace-seconds", grace]) == 0
        used.result(20)
    assert re.fullmatch(r"export ANTHROPIC_BASE_URL=\S+\n", printed + capsys.readouterr().out)
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before
    assert not processes()
    assert [record.getMessage() for record in caplog.records] == ["The server ends, and cuts off 1 connection(s)"]


@pytest.mark.parametrize("place", ["cc:secret@db/usage", "cc@db/usage?password=secret", "cc:secret@[db/usage"])
def test_a_password_on_the_command_line_is_refused_and_not_printed(
    place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """MSG-176"""
    with pytest.raises(SystemExit) as ended:
        command_line.main(["--clients", "c", "--usage-store", f"postgresql://{place}"])
    printed = capsys.readouterr()
    assert ended.value.code == 2
    assert "put it into ~/.pgpass" in printed.err and "secret" not in printed.err


def test_a_token_file_that_cannot_be_used_is_refused(tmp_path: Path, serve: Serve) -> None:
    (tmp_path / "empty").write_text(" \n")
    (tmp_path / "binary").write_bytes(b"\xff")
    for name, word in (("none", "none"), ("empty", "no token"), ("binary", "cannot be read")):
        code, _, errors = serve("--port", "0", "--token-file", tmp_path / name)
        assert code == 1
        assert word in errors


def test_a_token_that_others_can_read_is_warned_of(tmp_path: Path, serve: Serve) -> None:
    file = tmp_path / "token"
    file.write_text("secret")
    for mode, is_told in ((0o644, True), (0o600, False)):
        file.chmod(mode)
        code, output, errors = serve("--port", "0", "--token-file", file)
        assert (code, "warning" in errors) == (0, is_told)
        assert "secret" not in errors + output


@pytest.mark.parametrize(("host", "is_told"), [("127.0.0.1", False), ("localhost", False), ("0.0.0.0", True)])
def test_an_address_that_others_can_reach_is_warned_of(host: str, is_told: bool, serve: Serve) -> None:
    """MSG-41"""
    code, _, errors = serve("--port", "0", "--host", host)
    assert (code, "reached from other machines" in errors) == (0, is_told)


def test_an_address_where_it_cannot_listen_is_refused(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, errors = serve("--port", port)
    assert code == 1
    assert f"port {port}" in errors
    for wrong in ("70000", "-1", "x"):
        with pytest.raises(SystemExit):
            serve("--port", wrong)
        assert f"argument --port: '{wrong}' is not a number from 0 to 65535" in capsys.readouterr().err
    code, _, errors = serve("--host", "no.such.host.invalid")
    assert code == 1
    assert "no.such.host.invalid" in errors
    assert serve("--size", "0")[0] == 1


def test_a_server_does_not_become_its_own_client(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for address, code in ((f"http://localhost:{port}", 1), (f"http://[bad:{port}", 0), ("https://example.com", 0)):
        monkeypatch.setenv("ANTHROPIC_BASE_URL", address)
        ended, _, errors = serve("--port", port)
        assert (ended, "this server itself" in errors) == (code, code == 1)
