"""How a running process ends: by itself, by others, by `close()`."""

import asyncio
import gc
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from claude_agent_sdk import ClaudeAgentOptions, ResultMessage

from cc_session import Session, Timeouts, TurnError
from cc_session.internals import on_background
from cc_session.session.core import SessionCore
from cc_types import CLIConnectionError, ControlTimeoutError, ProcessExitedError

from .conftest import FakeCLI, all_raise, ask, cancelled, folders_in, process_of, until

pytestmark = pytest.mark.deaths

if sys.platform == "win32":
    raise pytest.skip.Exception("needs POSIX", allow_module_level=True)


async def test_a_process_that_is_killed_while_idle_is_noticed(own_session: Session) -> None:
    """SES-20."""
    process_of(own_session).kill()

    with anyio.fail_after(20):
        for _ in range(2):  # it stays dead
            for call in (
                own_session.control("get_settings"),
                own_session.add_user("Hello."),
                ask(own_session, "Hello."),
            ):
                with pytest.raises(ProcessExitedError) as raised:
                    await call
                assert (raised.value.exit_code, raised.value.signal) == (-9, "SIGKILL")
    assert own_session.state == "dead"
    assert isinstance(own_session.death, ProcessExitedError)


async def test_a_killed_process_does_not_run_though_nobody_has_taken_note_yet(own_session: Session) -> None:
    """SES-20."""

    async def kill() -> tuple[str, bool]:
        """Block the background loop meanwhile."""
        if sys.platform == "darwin" and sys.version_info < (3, 13):
            raise pytest.skip.Exception("there is no waitid")
        assert own_session.pid is not None
        process_of(own_session).kill()
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, own_session.pid, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222 - that is the point
        return own_session.state, own_session.is_running

    assert own_session.is_running
    assert await on_background(kill) == ("idle", False)


async def test_who_waits_hears_of_a_death_at_once(own_session: Session, slow_api: Any) -> None:
    """SES-20, SES-71: in a turn, which alone would wait for minutes."""
    asking = await slow_api.during(ask(own_session, "Hello."))
    process_of(own_session).kill()

    with anyio.fail_after(20), pytest.raises(ProcessExitedError) as raised:
        await asking

    assert (raised.value.signal, raised.value.phase) == ("SIGKILL", "turn")
    assert own_session.state == "dead"


async def test_a_process_end_is_one_log_line_without_earlier_turns(
    fake_cli: FakeCLI, caplog: pytest.LogCaptureFixture
) -> None:
    """SES-86: neither the stderr nor the result, which the SDK would take for the reason."""
    options = fake_cli("""
initialize()
prompts = frames()
print("The words of one turn.", file=sys.stderr, flush=True)
send(type="result", subtype="success", duration_ms=1, duration_api_ms=1, is_error=True, num_turns=1, session_id="s",
     user_message_uuid=next(prompts)["uuid"], result="The error of one turn.")
frame = next(prompts)
print("[Anthropic SDK DEBUG] [log_1] sending request {\\n  secret: 1,\\n}\\nThe reason.", file=sys.stderr, flush=True)
sys.exit(3)
""")
    async with await Session.open(options) as session:
        with pytest.raises(TurnError, match="one turn"):
            await session.run("One?")
        with pytest.raises(ProcessExitedError) as raised:
            await session.run("Two?")
        pid = session.pid
    assert (raised.value.exit_code, raised.value.stderr_tail) == (3, "The reason.")
    records = [(record.name, record.getMessage()) for record in caplog.records if record.levelname != "DEBUG"]
    assert records == [("cc_session.process.link", f"Process {pid}: Claude Code exited with code 3 during turn")]


async def test_an_answer_to_an_ended_process_leaves_no_unread_error(
    fake_cli: FakeCLI, caplog: pytest.LogCaptureFixture
) -> None:
    options = fake_cli("""
initialize()
sys.stdin.readline()
os.close(0)
send(type="control_request", request_id="1", request={"subtype": "new"})
time.sleep(0.2)
""")
    async with await Session.open(options) as session:
        with pytest.raises(ProcessExitedError):
            await session.run("Hello.")
    gc.collect()

    assert "never retrieved" not in caplog.text


async def test_a_stopped_process_is_a_timeout_and_is_closed_in_time(options: ClaudeAgentOptions, slow_api: Any) -> None:
    """SES-23, SES-29, SES-34."""
    timeouts = Timeouts(control=0.3, close=0.4)
    session = await Session.open(options, timeouts=timeouts)
    asking = await slow_api.during(ask(session, "Hello."))
    process_of(session).suspend()

    for call, name in (
        (session.control("get_settings"), "get_settings"),
        (session.interrupt(), "interrupt"),
        (session.rewind(session.last_user_uuid or ""), "rewind_conversation"),
    ):
        began = time.monotonic()
        with pytest.raises(ControlTimeoutError) as raised:
            await call
        assert raised.value.subtype == name
        assert timeouts.control <= time.monotonic() - began < timeouts.control + 10

    with anyio.fail_after(20):
        await session.close()
    with pytest.raises(CLIConnectionError, match="The session is closed"):
        await asking


async def test_a_stopped_process_does_not_block_a_message_larger_than_the_pipe(options: ClaudeAgentOptions) -> None:
    """SES-29: the output has no reader."""
    session = await Session.open(options, timeouts=Timeouts(control=0.3, close=0.4))
    process_of(session).suspend()
    long = "x" * 1_000_000
    calls = session.add_user(long), session.add_assistant(long, model="m"), session.control("get_settings")
    with anyio.fail_after(20):
        await all_raise(ControlTimeoutError, *calls)
        await session.close()


async def test_close_waits_for_no_timeout_whatever_the_session_does(
    options: ClaudeAgentOptions, slow_api: Any, children: Callable[[], list[psutil.Process]]
) -> None:
    """SES-23."""
    for is_busy in (False, True):
        session = await Session.open(options, timeouts=Timeouts(close=60))
        asking = [await slow_api.during(ask(session, "Hello."))] if is_busy else []

        with anyio.fail_after(20):
            await session.close()

        assert not children()
        assert (session.state, session.pid, session.death) == ("dead", None, None)
        await all_raise(CLIConnectionError, *asking, match="The session is closed")


async def test_close_fails_what_waits_for_the_process(fake_cli: FakeCLI) -> None:
    """SES-23, SES-30."""
    session = await Session.open(fake_cli("initialize()\nfor frame in frames(): pass"))
    waiting = [asyncio.ensure_future(session.control("get_settings")), asyncio.ensure_future(session.add_user("Hi."))]
    await asyncio.wait(waiting, timeout=0.1)

    with anyio.fail_after(20):
        await session.close()
        await all_raise(CLIConnectionError, *waiting, match="The session is closed")


async def test_close_may_come_any_number_of_times_and_from_anywhere(options: ClaudeAgentOptions) -> None:
    """SES-23, SES-75."""
    session = await Session.open(options)
    pid = session.pid
    assert pid is not None
    threads = asyncio.gather(*(asyncio.to_thread(asyncio.run, session.close()) for _ in range(3)))
    await asyncio.gather(session.close(), session.close())

    assert not psutil.pid_exists(pid)  # all of them wait until it is done
    await threads
    await session.close()


async def test_a_cancelled_close_is_done_all_the_same(options: ClaudeAgentOptions, slow_api: Any) -> None:
    """SES-23."""
    session = await Session.open(options)
    asking = await slow_api.during(ask(session, "Hello."))
    closing = asyncio.ensure_future(session.close())
    await asyncio.sleep(0)
    await cancelled(closing)

    with anyio.fail_after(20):
        await session.close()
    await all_raise(CLIConnectionError, asking)


async def test_leaving_the_context_closes_the_session_also_after_an_error(
    options: ClaudeAgentOptions,
) -> None:
    session = await Session.open(options)
    with pytest.raises(ZeroDivisionError):
        async with session:
            raise ZeroDivisionError
    assert session.state == "dead"

    calls = (
        session.control("get_settings"), session.add_user("x"), session.add_assistant("x", model="m"),
        ask(session, "x"), session.interrupt(), session.rewind("x"), session.set_env({}),
        session.run("x"), session.stream("x").__aenter__(), session.reset(), session.reset(tools_changed=True),
        session.set_model("m"), session.set_permission_mode("plan"),
    )  # fmt: skip
    await all_raise(CLIConnectionError, *calls, match=r"The session is closed\. Open another session\.")
    assert repr(session) == "<Session pid=None dead turns=0 cost_usd=0>"


async def test_a_session_that_nobody_has_any_more_ends(
    options: ClaudeAgentOptions, children: Callable[[], list[psutil.Process]], temporary: Path
) -> None:
    """SES-24: but not while a turn of it is read."""
    async with (await Session.open(options)).stream("Hello.") as messages:
        gc.collect()
        assert isinstance([message async for message in messages][-1], ResultMessage)
        assert children()
    del messages
    await until(lambda: not children() and not folders_in(temporary))


async def test_a_session_whose_caller_has_left_as_it_opened_ends(
    fake_cli: FakeCLI,
    children: Callable[[], list[psutil.Process]],
    temporary: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SES-24: the result is on its way to a task that is being cancelled."""
    opened, opens = threading.Event(), SessionCore.open

    async def open(*arguments: Any) -> SessionCore:
        try:
            return await opens(*arguments)
        finally:
            asyncio.get_running_loop().call_soon(asyncio.get_running_loop().call_soon, opened.set)

    monkeypatch.setattr(SessionCore, "open", open)
    opening = asyncio.ensure_future(Session.open(fake_cli("initialize()\nsys.stdin.read()")))
    await asyncio.sleep(0)
    assert opened.wait(20)  # while no task can take the result
    await cancelled(opening)
    await until(lambda: not children() and not folders_in(temporary))
