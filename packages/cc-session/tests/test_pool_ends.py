"""Ends of processes: death, and a pool that is closed, forgotten or forked."""

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from claude_agent_sdk import ClaudeAgentOptions

from cc_loopback import LoopbackServer
from cc_session import PoolLimits, SessionPool
from cc_types import CLIConnectionError, ProcessExitedError

from .conftest import FakeCLI, all_raise, echo, folders_in, process_of, until

if sys.platform == "win32":
    raise pytest.skip.Exception("needs POSIX", allow_module_level=True)

pytestmark = [pytest.mark.deaths, pytest.mark.usefixtures("echoes")]

Processes = Callable[[], list[psutil.Process]]


# --- Processes that die ---


async def test_a_process_that_died_while_idle_is_replaced(server: LoopbackServer, lone_pool: SessionPool) -> None:
    """SES-67, SES-20: also in the milliseconds before the pool knows it."""
    processes: list[psutil.Process] = []
    for _ in range(2):
        async with lone_pool.lease() as session:
            assert (await session.run("Still there?")).text == "Still there?"
            processes.append(process_of(session))
        await until(lambda: lone_pool.stats().idle == 1)
        await asyncio.sleep(0.1)  # a process that answered a moment ago is not checked
        processes[-1].kill()
    async with lone_pool.lease() as session:
        assert len({*processes, process_of(session)}) == 3


async def test_a_process_that_dies_fails_only_its_turn_unless_retried(
    server: LoopbackServer, lone_pool: SessionPool, slow_api: Any
) -> None:
    """SES-20, SES-67, SES-73."""
    async with lone_pool.lease() as session:
        turn = await slow_api.during(session.run("Slow."))
        process_of(session).kill()
        with anyio.fail_after(10):
            await all_raise(ProcessExitedError, turn)
    async with lone_pool.lease() as session:
        process = process_of(session)
    turn = await slow_api.during(lone_pool.run("Quick.", retries=1))
    server.respond = echo
    process.kill()
    assert (await turn).text == "Quick."


async def test_a_turn_is_not_repeated_once_its_answer_has_begun(fake_cli: FakeCLI) -> None:
    """SES-73."""
    fake = fake_cli("""
initialize()
next(frames())
message = {"role": "assistant", "model": "m", "content": [{"type": "text", "text": "It is"}]}
send(type="assistant", message=message, session_id="s", uuid="u", parent_tool_use_id=None)
sys.exit(3)
""")
    async with SessionPool(fake, limits=PoolLimits(size=1, prewarm=0)) as pool:
        with pytest.raises(ProcessExitedError):
            await pool.run("Hello.", retries=5)
        assert pool.stats().leases == 1


@pytest.mark.parametrize(
    "output",
    ["print('{bad', flush=True)", "os.write(1, bytes([123, 0xff, 10]))", "send(type='assistant')", "sys.exit(0)"],
)
async def test_after_malformed_output_the_next_lease_gets_its_own_answer(
    options: ClaudeAgentOptions, fake_cli: FakeCLI, tmp_path: Path, output: str
) -> None:
    """SES-67, SES-21, SES-35: the first process fails, the second does not."""
    first = tmp_path / "was-here"
    fake = fake_cli(f"""
import pathlib
initialize()
is_first = not pathlib.Path({str(first)!r}).exists()
pathlib.Path({str(first)!r}).touch()
for frame in frames():
    if frame["type"] == "user":
        if is_first:
            {output}
        result(frame, result=frame["message"]["content"])
""")
    async with SessionPool(fake, limits=PoolLimits(size=1, prewarm=0)) as pool:
        with pytest.raises(Exception, match=r".") as raised:
            await pool.run("One.")
        assert not isinstance(raised.value, TimeoutError)
        assert (await pool.run("Two.")).text == "Two."
        assert pool.stats().recycled == {"dead": 1}


# --- The end ---


async def test_close_ends_all_and_leaves_nothing(
    server: LoopbackServer, options: ClaudeAgentOptions, slow_api: Any, temporary: Path, processes: Processes
) -> None:
    """SES-23, SES-27: processes that are idle, leased, in a turn, and being started; and waiting leases."""
    pool = SessionPool(options, limits=PoolLimits(size=3, prewarm=0))
    await pool.warm(2)
    async with pool.lease() as session:
        turn = await slow_api.during(pool.run("Slow."))
        starting = asyncio.ensure_future(pool.run("Hello.", system_prompt="Another."))
        await until(lambda: pool.stats().starting == 1)
        waiting = asyncio.ensure_future(pool.run("Hello.", system_prompt="A third."))
        await until(lambda: pool.stats().waiting == 2)

        with anyio.fail_after(5):
            await asyncio.gather(pool.close(), pool.close())

        assert not processes()
        assert not folders_in(temporary)
        assert session.state == "dead"
        calls = turn, starting, waiting, pool.run("Too late."), pool.warm(1)
        await all_raise(CLIConnectionError, *calls, match="closed")
    await pool.close()
    assert repr(pool) == "<SessionPool idle=0 busy=0 resetting=0 starting=0 waiting=0 size=3>"


async def test_a_forgotten_pool_ends_its_processes(
    server: LoopbackServer, options: ClaudeAgentOptions, temporary: Path, processes: Processes
) -> None:
    pool = SessionPool(options, limits=PoolLimits(size=1, prewarm=0))
    await pool.warm(1)
    assert len(processes()) == 1
    del pool
    gc.collect()
    await until(lambda: not processes() and not folders_in(temporary))


async def test_a_lease_that_is_never_entered_or_left_does_no_harm(one_process: SessionPool) -> None:
    one_process.lease()
    leased = one_process.lease()
    await leased.__aenter__()
    del leased
    gc.collect()
    await until(lambda: one_process.stats().idle == 1)


async def test_reprs_show_state_and_no_secret(fake_cli: FakeCLI) -> None:
    """SES-68."""
    idle = fake_cli("initialize()\nfor frame in frames(): pass")
    secret = replace(idle, system_prompt="s3cret", env={"ANTHROPIC_API_KEY": "s3cret"})
    async with SessionPool(secret, limits=PoolLimits(size=2, prewarm=0)) as pool:
        async with pool.lease() as session:
            assert repr(pool) == "<SessionPool idle=0 busy=1 resetting=0 starting=0 waiting=0 size=2>"
            assert "s3cret" not in repr(session) + repr(pool) + repr(pool.stats())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_forked_child_has_processes_of_its_own(
    server: LoopbackServer, options: ClaudeAgentOptions, processes: Processes
) -> None:
    """SES-74, SES-84."""
    with SessionPool(options, limits=PoolLimits(size=1, prewarm=0)) as pool:
        pool.run_sync("Parent.")
        [mine] = processes()
        if (child := os.fork()) == 0:
            try:
                answer = pool.run_sync("Child.").text
                pool.close_sync()
                os._exit(0 if answer == "Child." else 1)
            finally:
                os._exit(2)
        deadline = time.monotonic() + 20
        while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert os.waitstatus_to_exitcode(ended[1]) == 0
        assert pool.run_sync("Parent.").text == "Parent."
        assert processes() == [mine]


def test_a_thread_that_is_interrupted_in_run_sync_gives_its_lease_back(
    server: LoopbackServer, lone_pool: SessionPool, slow_api: Any
) -> None:
    """SES-75: as Ctrl-C does in a console."""

    def interrupt() -> None:
        asyncio.run(slow_api.wait_for_prompt())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        lone_pool.run_sync("Slow.")
    thread.join()
    server.respond = echo
    assert lone_pool.run_sync("Quick.").text == "Quick."


ENDS_WHILE_LEASES_WAIT = """
import json, os, sys, threading, time
from cc_session import PoolLimits, SessionPool, sealed_options
from cc_types import CLIConnectionError

pool = SessionPool(sealed_options(env=json.loads(sys.argv[1])), limits=PoolLimits(size=1))

def ask():
    try:
        pool.run_sync("Hello.")
    except CLIConnectionError as error:
        os.write(1, f"{error.reason}\\n".encode())  # at once, since others write, too

for _ in range(3):
    threading.Thread(target=ask, daemon=True).start()
while pool.stats().waiting < 2 or not pool.stats().busy:
    time.sleep(0.01)
"""


async def test_a_program_that_ends_while_leases_wait_starts_no_process_for_them(
    server: LoopbackServer, slow_api: Any, tmp_path: Path
) -> None:
    """SES-77."""
    program = [sys.executable, "-c", ENDS_WHILE_LEASES_WAIT, json.dumps(server.env())]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = await asyncio.to_thread(
        subprocess.run, program, env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == ["The pool is closed"] * 2 + ["The session is closed"]
    assert not folders_in(tmp_path)
