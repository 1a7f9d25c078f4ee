"""Failures while a session opens, each of which leaves nothing behind."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from claude_agent_sdk import ClaudeAgentOptions, Transport
from typing_extensions import override

from cc_session import Session, Timeouts
from cc_session.internals import bundled_cli
from cc_types import (
    CLIConnectionError,
    CLIJSONDecodeError,
    CLINotFoundError,
    ControlTimeoutError,
    MessageParseError,
    ProcessExitedError,
)

from .conftest import FakeCLI, folders_in, until

Children = Callable[[], list[psutil.Process]]
# A CLI that never answers; a busy machine takes longer to start one that does.
HURRY = Timeouts(connect=0.5, close=0.4)
CLOSED_SOON = Timeouts(close=0.4)


async def test_a_missing_cli_is_named_with_what_to_do(tmp_path: Path) -> None:
    """SES-70, SES-96."""
    missing = tmp_path / "no: such claude"
    with anyio.fail_after(10), pytest.raises(CLINotFoundError) as raised:
        await Session.open(ClaudeAgentOptions(cli_path=missing))

    assert raised.value.path == str(missing)
    assert str(missing) in str(raised.value)
    assert f"Leave cli_path out to run {bundled_cli()}" in str(raised.value)


@pytest.mark.parametrize(("cwd", "advice"), [("", r"Write '\.'"), ("~", f"Did you mean '{Path.home()}'")])
async def test_a_folder_that_a_shell_would_take_is_explained(cwd: str, advice: str) -> None:
    """SES-96"""
    with pytest.raises(CLIConnectionError, match=f"cwd='{cwd}' is not a folder. {advice}"):
        await Session.open(ClaudeAgentOptions(cwd=cwd))


async def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """SES-96: with its nearest neighbour."""
    (tmp_path / "somewhere").mkdir()
    with anyio.fail_after(10), pytest.raises(CLIConnectionError, match=r"cwd='.*somewher'.*somewhere'\?") as raised:
        await Session.open(ClaudeAgentOptions(cwd=tmp_path / "somewher"))

    assert not isinstance(raised.value, CLINotFoundError)


@pytest.mark.parametrize(("before", "code"), [("", 0), ("", 7), ("sys.stdin.readline()\n", 7)])
async def test_a_cli_that_exits_early_is_reported_at_once_with_stderr(
    fake_cli: FakeCLI, before: str, code: int
) -> None:
    """SES-20, SES-71, SES-97: the time for closing is for existing processes."""
    options = fake_cli(f"{before}print('first\\nIt broke.', file=sys.stderr, end='')\nsys.exit({code})")
    with anyio.fail_after(10), pytest.raises(ProcessExitedError) as raised:
        await Session.open(options, timeouts=Timeouts(close=40))

    assert (raised.value.exit_code, raised.value.phase) == (code, "connect")
    assert raised.value.stderr_tail == "first\nIt broke."
    assert "It broke." in str(raised.value)


@pytest.mark.deaths
async def test_a_cli_that_never_answers_is_given_up_in_time(fake_cli: FakeCLI, children: Children) -> None:
    """SES-29: also when it ignores signals."""
    options = fake_cli("signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: time.sleep(60)")
    began = time.monotonic()
    with pytest.raises(ControlTimeoutError) as raised:
        await Session.open(options, timeouts=HURRY)

    assert (raised.value.subtype, raised.value.seconds) == ("initialize", HURRY.connect)
    assert HURRY.connect <= time.monotonic() - began < 20
    assert not children()


async def test_a_refusal_of_the_cli_is_a_connection_error(fake_cli: FakeCLI) -> None:
    """SES-69: the SDK raises a bare `Exception` here."""
    options = fake_cli("""
request = json.loads(sys.stdin.readline())
answer(request, subtype="error", error="No entry")
sys.stdin.read()
""")
    with pytest.raises(CLIConnectionError, match="No entry") as refused:
        await Session.open(options)
    assert type(refused.value.__cause__) is Exception


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("print('{bad', flush=True)", CLIJSONDecodeError),
        ('sys.stdout.buffer.write(b\'{"type": "\\xff"}\\n\'); sys.stdout.flush()', CLIJSONDecodeError),
        ("send(type='result')", MessageParseError),
        ("send(type='assistant', message=None)", MessageParseError),
        ("send(type='assistant', message={'content': ['text']})", MessageParseError),
        ("print('{' + 'x' * 3000, flush=True)", CLIJSONDecodeError),
        ("print('{\"type\": \"assis', end='', flush=True); sys.exit()", ProcessExitedError),
        ("sys.exit()", ProcessExitedError),
        ("os.close(1)", ProcessExitedError),
    ],
)
async def test_malformed_output_ends_the_session_with_a_typed_error(
    fake_cli: FakeCLI, output: str, expected: type[Exception]
) -> None:
    """SES-21, SES-22, SES-35."""
    options = fake_cli(f"""
initialize()
frame = json.loads(sys.stdin.readline())
{output}
time.sleep(60)
""")
    async with await Session.open(replace(options, max_buffer_size=2000), timeouts=CLOSED_SOON) as session:
        with anyio.fail_after(10):
            for _ in range(2):  # it stays dead
                with pytest.raises(expected):
                    await session.run("Hello.")
            with pytest.raises(expected):
                await session.control("interrupt")

        assert session.state == "dead"
        assert isinstance(session.death, expected)


async def test_an_answer_without_content_is_ignored(fake_cli: FakeCLI) -> None:
    """SES-28."""
    options = fake_cli("""
initialize()
for frame in frames():
    send(type="control_response", response=None)
    result(frame, result="right")
""")
    async with await Session.open(options, timeouts=CLOSED_SOON) as session:
        assert (await session.run("Hello.")).text == "right"


@pytest.mark.deaths
@pytest.mark.parametrize("count", [8, pytest.param(30, marks=pytest.mark.slow)])
async def test_cancels_of_opening_at_any_moment_leave_no_process(
    options: ClaudeAgentOptions, temporary: Path, children: Children, count: int
) -> None:
    """SES-24."""
    cancelled = 0
    for number in range(count):
        opening = asyncio.ensure_future(Session.open(options))
        await asyncio.wait({opening}, timeout=number / count * 0.25)
        opening.cancel()
        try:
            await (await opening).close()
        except asyncio.CancelledError:
            cancelled += 1

    assert cancelled > count / 6
    await until(lambda: not children() and not folders_in(temporary))


class Scripted(Transport):
    """A caller's transport with special errors."""

    def __init__(self, *, hangs_in: str = "") -> None:
        self.hangs_in = hangs_in
        self.breaks = False
        self._written: asyncio.Queue[str] = asyncio.Queue()
        self.is_closed = False
        self.is_hanging = True

    async def _come_to(self, place: str) -> None:
        if place == self.hangs_in:
            try:
                await asyncio.Event().wait()
            finally:
                self.is_hanging = False

    @override
    async def connect(self) -> None:
        await self._come_to("connect")

    @override
    async def write(self, data: str) -> None:
        await self._come_to("write")
        if self.breaks:
            raise BrokenPipeError("It broke")
        self._written.put_nowait(data)

    @override
    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        while True:
            frame = json.loads(await self._written.get())
            if frame["type"] == "control_request":
                response = {"subtype": "success", "request_id": frame["request_id"]}
                yield {"type": "control_response", "response": response}

    @override
    async def end_input(self) -> None:
        pass

    @override
    def is_ready(self) -> bool:
        return True

    @override
    async def close(self) -> None:
        await self._come_to("close")
        self.is_closed = True


@pytest.fixture
def reason_comes_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cc_session.process.link._REASON_SECONDS", 0.01)


@pytest.mark.usefixtures("reason_comes_soon")
async def test_a_caller_s_transport_replaces_the_process_until_a_write_fails() -> None:
    """SES-19, SES-35: nobody knows how much of it arrived, and so the session is dead."""
    transport = Scripted()
    async with await Session.open(transport=transport, timeouts=CLOSED_SOON) as session:
        assert (session.state, session.pid) == ("idle", None)
        assert await session.control("anything") == {}
        transport.breaks = True
        for _ in range(2):
            with anyio.fail_after(10), pytest.raises(CLIConnectionError, match="It broke"):
                await session.run("Hello.")
        assert session.state == "dead"
    assert transport.is_closed


async def test_options_that_cannot_be_written_down_leave_nothing(options: ClaudeAgentOptions) -> None:
    servers: Any = {"bad": {"type": "stdio", "command": b"bytes"}}
    with pytest.raises(TypeError, match="not JSON serializable"):
        await Session.open(replace(options, mcp_servers=servers))


@pytest.mark.deaths
@pytest.mark.parametrize("place", ["connect", "write"])
async def test_a_transport_that_hangs_is_given_up_in_time(place: str) -> None:
    """SES-29."""
    transport = Scripted(hangs_in=place)
    with anyio.fail_after(10), pytest.raises(ControlTimeoutError):
        await Session.open(transport=transport, timeouts=HURRY)
    assert transport.is_closed


@pytest.mark.deaths
async def test_a_transport_that_does_not_close_is_left_in_time(caplog: pytest.LogCaptureFixture) -> None:
    """SES-23."""
    session = await Session.open(transport=Scripted(hangs_in="close"), timeouts=HURRY)
    with anyio.fail_after(10):
        await session.close()
    assert "was not closed within 0.8 seconds" in caplog.text
