"""Leases: who gets which process, what becomes of it afterwards, and what wrong use does."""

import asyncio
import contextlib
import gc
import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import psutil
import pytest
from claude_agent_sdk import ClaudeAgentOptions, create_sdk_mcp_server, tool

from cc_loopback import JsonObject, LoopbackServer
from cc_session import SessionBusyError, SessionPool, TurnError
from cc_types import CLIConnectionError, CLINotFoundError, ControlRequestError, ProcessExitedError

pytestmark = pytest.mark.slow


def echo(body: JsonObject) -> str:
    """Answer with the prompt."""
    return body["messages"][-1]["content"][-1]["text"]


@pytest.fixture
def server(server: LoopbackServer) -> LoopbackServer:
    server.respond = echo
    return server


@pytest.fixture
async def pool(options: ClaudeAgentOptions) -> AsyncIterator[SessionPool]:
    """One process, so that it is clear which one a lease gets."""
    async with SessionPool(options, size=1, prewarm=0) as pool:
        yield pool


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what a pool does by itself, of which nobody is told."""
    for _ in range(2_000):
        if condition():
            return
        await asyncio.sleep(0.01)
    pytest.fail("that did not come to pass")


def folders_in(temporary: Path) -> list[Path]:
    return [*temporary.glob("cc-session-*")]


def processes() -> list[psutil.Process]:
    """The processes of pools, without their guards. Some may have gone while they were looked for."""
    found: list[psutil.Process] = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if child.name() != "sh":
                found.append(child)
    return found


# --- What a lease gets ---


async def test_a_lease_gets_an_empty_conversation_in_a_process_that_runs_already(
    server: LoopbackServer, pool: SessionPool
) -> None:
    """SES-61, SES-62."""
    pids: list[int | None] = []
    for text in ("One.", "Two.", "Three."):
        async with pool.lease() as session:
            pids.append(session.pid)
            assert (await session.run(text)).text == text
            assert (await session.run("And?")).text == "And?"

    assert len({*pids}) == 1
    assert [len(body["messages"]) for body in server.requests] == [1, 3] * 3


async def test_run_asks_in_a_conversation_of_its_own(server: LoopbackServer, pool: SessionPool) -> None:
    for text in ("One.", "Two."):
        turn = await pool.run(text)
        assert turn.text == text
        assert turn.usage.input_tokens > 0
    assert [len(body["messages"]) for body in server.requests] == [1, 1]


async def test_the_process_that_was_used_last_goes_out_first(options: ClaudeAgentOptions) -> None:
    """SES-66."""
    async with SessionPool(options, size=3, prewarm=0) as pool:
        await pool.warm(3)
        async with pool.lease() as first, pool.lease() as second:
            pids = [first.pid, second.pid]
            await second.run("Hello.")
        await until(lambda: pool.stats().idle == 3)

        async with pool.lease() as session:
            assert session.pid in pids


async def test_other_options_have_processes_of_their_own(
    server: LoopbackServer, options: ClaudeAgentOptions, tmp_path: Path
) -> None:
    """SES-61."""
    async with SessionPool(options, size=4, prewarm=0) as pool:
        pids = set[int | None]()
        for _ in range(2):
            async with pool.lease() as session:
                pids.add(session.pid)
            async with pool.lease(system_prompt="You are another.") as session:
                pids.add(session.pid)
                await session.run("Hello.")
                assert "You are another." in str(server.requests[-1]["system"])
            async with pool.lease(cwd=tmp_path) as session:
                pids.add(session.pid)
            async with pool.lease(replace(options, cwd=tmp_path)) as session:
                pids.add(session.pid)
            async with pool.lease(env={"COLOUR": "red"}) as session:
                pids.add(session.pid)
        assert len(pids) == 4
        assert pool.stats().starts == 4


async def test_model_and_mode_are_set_on_a_process_that_runs(server: LoopbackServer, pool: SessionPool) -> None:
    """SES-61."""
    for model in ("claude-opus-5-5", "claude-sonnet-5", "claude-opus-5-5"):
        async with pool.lease(model=model, permission_mode="acceptEdits") as session:
            await session.run("Hello.")
            assert server.requests[-1]["model"] == model
    await pool.run("Hello.")
    assert server.requests[-1]["model"] == "claude-sonnet-5"
    assert pool.stats().starts == 1


async def test_a_mode_that_leaves_traces_has_processes_of_its_own(pool: SessionPool) -> None:
    """SES-61."""
    for mode in ("plan", "default", "plan"):
        async with pool.lease(permission_mode=mode):
            pass
    assert pool.stats().recycled == {"evicted": 2}


async def test_options_are_taken_as_they_were_when_the_lease_was_asked_for(
    server: LoopbackServer, pool: SessionPool, options: ClaudeAgentOptions
) -> None:
    mine = replace(options, env={**options.env})
    await pool.run("Hello.", options=mine)
    mine.env["COLOUR"] = "red"
    await pool.run("Hello.", options=mine)
    mine.env.pop("COLOUR")
    async with pool.lease(mine) as session:
        mine.system_prompt = "Too late."
        await session.run("Hello.")
    assert "Too late" not in str(server.requests)
    assert pool.stats().starts == 3


async def test_an_override_that_no_option_has_is_refused(pool: SessionPool) -> None:
    with pytest.raises(TypeError, match="colour"):
        await pool.run("Hello.", **{"colour": "red"})  # pyright: ignore[reportArgumentType] - that is the point


async def test_options_that_resume_something_are_used_once(
    server: LoopbackServer, pool: SessionPool, options: ClaudeAgentOptions
) -> None:
    """SES-62: the conversation does not begin empty, or belongs to one session alone."""
    once = replace(options, session_id=str(uuid4()))
    for _ in range(2):
        await pool.run("Hello.", options=once)
    await until(lambda: pool.stats().recycled == {"fresh": 2})


# --- What a lease may do ---


async def test_a_session_can_do_nothing_after_its_lease(server: LoopbackServer, pool: SessionPool) -> None:
    """SES-67."""
    async with pool.lease() as old:
        await old.run("Mine.")
        stream = old.ask("Mine, too.")
        await anext(stream)
    async with pool.lease() as new:
        for call in (old.run("x"), old.add_user("x"), old.reset(), old.control("get_settings"), anext(stream)):
            with pytest.raises(CLIConnectionError, match="The lease of this session has ended"):
                await call
        await old.close()
        assert (old.state, old.pid, old.last_user_uuid, old.suspended) == ("dead", None, None, ())
        assert (await new.run("Yours.")).text == "Yours."
        assert len(server.requests[-1]["messages"]) == 1
    assert pool.stats().starts == 1


async def test_what_goes_on_when_a_lease_ends_is_broken_off(
    server: LoopbackServer, pool: SessionPool, held: Any
) -> None:
    """SES-67: a message that waits for its turn must not come into the conversation of another lease."""
    async with pool.lease() as session:
        running = asyncio.ensure_future(session.run("Slow."))
        await held.asked()
        running.cancel()
        await asyncio.wait({running})
        others = [asyncio.ensure_future(call) for call in (session.run("Late."), session.add_user("Late."))]
        await asyncio.sleep(0)
    server.respond = echo
    assert (await pool.run("Quick.")).text == "Quick."
    for other in others:
        with pytest.raises((CLIConnectionError, SessionBusyError)):
            await other
    assert "Late." not in str(server.requests[-1])
    assert pool.stats().starts == 1


async def test_a_session_that_is_given_back_in_a_turn_has_forgotten_it(
    server: LoopbackServer, pool: SessionPool, held: Any
) -> None:
    """SES-10, SES-62."""
    async with pool.lease() as session:
        turn = asyncio.ensure_future(session.run("Slow."))
        await held.asked()
    server.respond = echo

    with anyio.fail_after(10):
        assert (await pool.run("Quick.")).text == "Quick."
        with pytest.raises(CLIConnectionError):
            await turn
    assert server.requests[-1]["messages"][0]["content"][0]["text"] == "Quick."
    assert pool.stats().starts == 1


async def test_a_session_that_its_holder_closes_is_replaced(server: LoopbackServer, pool: SessionPool) -> None:
    """SES-67."""
    async with pool.lease() as session:
        await session.close()
        with pytest.raises(CLIConnectionError, match="The session is closed"):
            await session.run("Hello.")
    assert (await pool.run("Hello.")).text == "Hello."
    assert pool.stats().recycled == {"dead": 1}


async def test_a_failed_turn_leaves_the_process_as_it_was(server: LoopbackServer, pool: SessionPool) -> None:
    """SES-72."""
    server.fail_next(status=500)
    with pytest.raises(TurnError):
        await pool.run("Hello.")
    assert (await pool.run("Hello.")).text == "Hello."
    assert pool.stats().starts == 1


async def test_what_is_raised_in_a_lease_comes_out_of_it(pool: SessionPool) -> None:
    with pytest.raises(ZeroDivisionError):
        async with pool.lease():
            raise ZeroDivisionError
    await until(lambda: pool.stats().idle == 1)


# --- Processes that die ---


async def test_a_process_that_died_while_idle_is_replaced(server: LoopbackServer, pool: SessionPool) -> None:
    """SES-67, SES-F04: also in the milliseconds in which nobody knows of it yet."""
    for _ in range(3):
        async with pool.lease() as session:
            await session.run("Hello.")
            pid = session.pid
        assert pid is not None
        await until(lambda: pool.stats().idle == 1)
        await asyncio.sleep(0.1)
        os.kill(pid, signal.SIGKILL)

        async with pool.lease() as session:
            assert session.pid != pid
            assert (await session.run("Still there?")).text == "Still there?"
    assert pool.stats().recycled == {"dead": 3}


async def test_a_process_that_dies_in_a_lease_fails_that_one_alone(
    server: LoopbackServer, pool: SessionPool, held: Any
) -> None:
    """SES-20, SES-67, SES-F04."""
    async with pool.lease() as session:
        turn = asyncio.ensure_future(session.run("Slow."))
        await held.asked()
        assert session.pid is not None
        os.kill(session.pid, signal.SIGKILL)
        with anyio.fail_after(1), pytest.raises(ProcessExitedError):
            await turn
    server.respond = echo
    assert (await pool.run("Quick.")).text == "Quick."


async def test_a_turn_is_repeated_if_that_was_asked_for_and_nothing_of_the_answer_had_come(
    server: LoopbackServer, pool: SessionPool, held: Any
) -> None:
    """SES-73."""
    for retries in (0, 1):
        server.respond = held
        turn = asyncio.ensure_future(pool.run("Hello.", retries=retries))
        await held.asked()
        server.respond = echo
        processes()[0].kill()
        if retries:
            assert (await turn).text == "Hello."
        else:
            with pytest.raises(ProcessExitedError):
                await turn


async def test_a_turn_is_not_repeated_once_its_answer_has_begun(fake_cli: Callable[[str], ClaudeAgentOptions]) -> None:
    """SES-73."""
    fake = fake_cli("""
initialize()
next(frames())
message = {"role": "assistant", "model": "m", "content": [{"type": "text", "text": "It is"}]}
send(type="assistant", message=message, session_id="s", uuid="u", parent_tool_use_id=None)
sys.exit(3)
""")
    async with SessionPool(fake, size=1, prewarm=0) as pool:
        with pytest.raises(ProcessExitedError):
            await pool.run("Hello.", retries=5)
        assert pool.stats().leases == 1


@pytest.mark.parametrize(
    "output",
    ["print('{bad', flush=True)", "os.write(1, bytes([123, 0xff, 10]))", "send(type='assistant')", "sys.exit(0)"],
)
async def test_after_malformed_output_the_next_lease_gets_its_own_answer(
    options: ClaudeAgentOptions, fake_cli: Callable[[str], ClaudeAgentOptions], tmp_path: Path, output: str
) -> None:
    """SES-67, SES-F06, SES-F07: the first process goes wrong, the second does not."""
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
    async with SessionPool(fake, size=1, prewarm=0) as pool:
        with pytest.raises(Exception, match=r".") as raised:
            await pool.run("One.")
        assert not isinstance(raised.value, TimeoutError)
        assert (await pool.run("Two.")).text == "Two."
        assert pool.stats().recycled == {"dead": 1}


async def test_a_process_that_hangs_in_a_lease_is_not_waited_for(
    server: LoopbackServer, options: ClaudeAgentOptions
) -> None:
    """SES-67, SES-F05: the way back hangs as well, so another process is started meanwhile."""
    async with SessionPool(options, size=2, prewarm=0) as pool:
        async with pool.lease() as session:
            await session.run("Hello.")
            assert session.pid is not None
            os.kill(session.pid, signal.SIGSTOP)
        with anyio.fail_after(5):
            assert (await pool.run("Hello.")).text == "Hello."


async def test_a_process_that_hangs_while_idle_is_replaced(server: LoopbackServer, pool: SessionPool) -> None:
    """SES-67, SES-F05."""
    async with pool.lease() as session:
        pid = session.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    await asyncio.sleep(0.1)
    with anyio.fail_after(10):
        assert (await pool.run("Hello.")).text == "Hello."
    assert pool.stats().recycled == {"dead": 1}


# --- Waiting ---


async def test_leases_are_served_in_the_order_in_which_they_came(
    server: LoopbackServer, options: ClaudeAgentOptions
) -> None:
    """SES-66: whatever options they have, so that none waits for ever."""
    order: list[str] = []

    async def lease(name: str, system_prompt: str) -> None:
        async with pool.lease(system_prompt=system_prompt):
            order.append(name)

    async with SessionPool(options, size=1, prewarm=0) as pool:
        async with pool.lease():
            waiting: list[asyncio.Task[None]] = []
            for number, prompt in enumerate(["B", "A", "B", "A"]):
                waiting.append(asyncio.ensure_future(lease(f"{prompt}{number}", prompt)))
                await until(lambda: pool.stats().waiting == len(waiting))
            assert order == []
        with anyio.fail_after(20):
            await asyncio.gather(*waiting)
        assert order == ["B0", "A1", "B2", "A3"]
        assert pool.stats().waits == 5


async def test_a_lease_that_waits_can_be_cancelled(server: LoopbackServer, pool: SessionPool) -> None:
    async with pool.lease():
        waiting = [asyncio.ensure_future(pool.run(text)) for text in ("One.", "Two.", "Three.")]
        await until(lambda: pool.stats().waiting == 3)
        waiting[1].cancel()
        await asyncio.wait({waiting[1]})
        await until(lambda: pool.stats().waiting == 2)
    assert [(await waiting[index]).text for index in (0, 2)] == ["One.", "Three."]


async def test_a_start_that_nobody_waits_for_any_more_is_not_lost(server: LoopbackServer, pool: SessionPool) -> None:
    """SES-24, SES-65."""
    waiting = asyncio.ensure_future(pool.run("Hello."))
    await until(lambda: pool.stats().starting == 1)
    waiting.cancel()
    await until(lambda: pool.stats().idle == 1)
    assert (await pool.run("Hello.")).text == "Hello."
    assert pool.stats().starts == 1


async def test_a_lease_cancelled_at_any_moment_is_given_back(server: LoopbackServer, pool: SessionPool) -> None:
    """SES-75."""
    await pool.warm(1)
    for step in range(40):
        task = asyncio.ensure_future(pool.run("Hello."))
        await asyncio.sleep(step / 1000)
        task.cancel()
        await asyncio.wait({task})
    with anyio.fail_after(10):
        assert (await pool.run("Still there?")).text == "Still there?"
    await until(lambda: pool.stats().idle == 1)
    assert pool.stats().waiting == 0


# --- Errors ---


async def test_a_lease_says_why_a_process_cannot_be_started_and_the_next_one_tries_again(
    server: LoopbackServer, pool: SessionPool, tmp_path: Path
) -> None:
    """SES-F01."""
    missing = tmp_path / "no-such-claude"
    for _ in range(2):
        with pytest.raises(CLINotFoundError):
            await pool.run("Hello.", cli_path=missing)
    with pytest.raises(CLINotFoundError):
        await pool.warm(1, cli_path=missing)
    with pytest.raises(CLIConnectionError, match="Working directory"):
        await pool.run("Hello.", cwd=tmp_path / "nowhere")
    assert pool.stats().failed_starts == 4
    assert (await pool.run("Hello.")).text == "Hello."


async def test_spare_processes_that_cannot_be_started_are_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """SES-65."""
    async with SessionPool(ClaudeAgentOptions(cli_path=tmp_path / "no-such-claude"), size=3, prewarm=2) as pool:
        await until(lambda: pool.stats().starting == 0)
        await asyncio.sleep(0.1)
        assert pool.stats().failed_starts <= 2  # two were started at once
    assert "A spare Claude Code process could not be started" in caplog.text


async def test_what_the_process_refuses_is_raised(pool: SessionPool) -> None:
    await pool.run("Hello.")
    with pytest.raises(ControlRequestError):
        await pool.run("Hello.", model="")
    assert (await pool.run("Hello.")).text == "Hello."


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"size": 0}, "size is 0"),
        ({"size": 2, "prewarm": 3}, "prewarm is 3"),
        ({"start_limit": 0}, "start_limit is 0"),
        ({"max_uses": 0}, "max_uses is 0"),
        ({"max_rss_mb": -1}, "max_rss_mb is -1"),
        ({"idle_seconds": 0}, "idle_seconds is 0"),
        ({"reset": "sometimes"}, "reset is 'sometimes'"),
    ],
)
def test_limits_that_make_no_sense_are_refused(limits: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SessionPool(**limits)


# --- Threads and loops ---


def test_run_sync_from_twenty_threads_gives_each_its_own_answer(
    server: LoopbackServer, options: ClaudeAgentOptions
) -> None:
    """SES-76, SES-F12."""
    with SessionPool(options, size=2) as pool, ThreadPoolExecutor(20) as threads:
        prompts = [f"Thread {number}" for number in range(60)]
        assert [turn.text for turn in threads.map(pool.run_sync, prompts)] == prompts


async def test_run_sync_works_beside_a_running_loop(server: LoopbackServer, pool: SessionPool) -> None:
    """SES-76: as in a notebook; it blocks that loop, and nothing else."""
    assert pool.run_sync("Hello.").text == "Hello."
    pool.close_sync()


def test_a_pool_is_used_from_many_threads_and_loops_at_once(
    server: LoopbackServer, options: ClaudeAgentOptions
) -> None:
    """SES-74."""

    async def lease(text: str) -> str:
        async with pool.lease() as session:
            return (await session.run(text)).text

    def in_a_loop(text: str) -> str:
        return asyncio.run(lease(text))

    with SessionPool(options, size=2) as pool, ThreadPoolExecutor(6) as threads:
        prompts = [f"Loop {number}" for number in range(18)]
        assert [*threads.map(in_a_loop, prompts)] == prompts


async def test_run_sync_where_it_would_wait_for_itself_says_so(
    server: LoopbackServer, options: ClaudeAgentOptions
) -> None:
    """SES-74: tools run on the loop that drives the processes; `run()` can be awaited there."""

    @tool("ask", "Ask.", {})
    async def ask(_arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            pool.run_sync("Hello.")
        except RuntimeError as error:
            turn = await pool.run("Hello.", options=options)
            return {"content": [{"type": "text", "text": f"{error} {turn.text}"}]}
        raise AssertionError

    def respond(body: JsonObject) -> str | list[JsonObject]:
        last = body["messages"][-1]["content"][-1]
        if last["type"] == "tool_result":
            return last["content"][0]["text"]
        return "Hello." if not body.get("tools") else [{"type": "tool_use", "name": "mcp__t__ask", "input": {}}]

    server.respond = respond
    tools = replace(
        options,
        mcp_servers={"t": create_sdk_mcp_server("t", tools=[ask])},
        allowed_tools=["mcp__t__*"],
        max_turns=None,
    )
    async with SessionPool(tools, size=2, prewarm=0) as pool:
        turn = await pool.run("Go.")
    assert turn.text == "The thread that runs Claude Code's hooks and tools cannot wait for it; use `await` Hello."


# --- The end ---


async def test_close_ends_all_and_leaves_nothing(
    server: LoopbackServer, options: ClaudeAgentOptions, held: Any, temporary: Path
) -> None:
    """SES-23, SES-27: processes that are idle, leased, in a turn, and being started; and what waits."""
    pool = SessionPool(options, size=3, prewarm=0)
    await pool.warm(2)
    async with pool.lease() as session:
        turn = asyncio.ensure_future(pool.run("Slow."))
        await held.asked()
        starting = asyncio.ensure_future(pool.run("Hello.", system_prompt="Another."))
        await until(lambda: pool.stats().starting == 1)
        waiting = asyncio.ensure_future(pool.run("Hello.", system_prompt="A third."))
        await until(lambda: pool.stats().waiting == 2)

        with anyio.fail_after(2):
            await asyncio.gather(pool.close(), pool.close())

        assert not processes()
        assert not folders_in(temporary)
        assert session.state == "dead"
        for call in (turn, starting, waiting, pool.run("Too late."), pool.warm(1)):
            with pytest.raises(CLIConnectionError, match="closed"):
                await call
    await pool.close()
    assert repr(pool) == "<SessionPool idle=0 busy=0 resetting=0 starting=0 waiting=0 size=3>"


async def test_closing_a_pool_that_was_never_used_is_nothing() -> None:
    pool = SessionPool()
    await pool.close()
    pool.close_sync()
    with pytest.raises(CLIConnectionError, match="The pool is closed"):
        await pool.run("Hello.")


async def test_a_forgotten_pool_ends_its_processes(
    server: LoopbackServer, options: ClaudeAgentOptions, temporary: Path
) -> None:
    pool = SessionPool(options, size=2, prewarm=0)
    await pool.warm(2)
    assert len(processes()) == 2
    del pool
    gc.collect()
    await until(lambda: not processes() and not folders_in(temporary))


async def test_a_lease_that_is_never_entered_or_left_does_no_harm(pool: SessionPool) -> None:
    pool.lease()
    leased = pool.lease()
    await leased.__aenter__()
    del leased
    gc.collect()
    await until(lambda: pool.stats().idle == 1)


async def test_reprs_show_state_and_no_secret(options: ClaudeAgentOptions) -> None:
    """SES-68."""
    secret = replace(options, system_prompt="s3cret", env={**options.env, "ANTHROPIC_API_KEY": "s3cret"})
    async with SessionPool(secret, size=2, prewarm=0) as pool:
        async with pool.lease() as session:
            assert repr(pool) == "<SessionPool idle=0 busy=1 resetting=0 starting=0 waiting=0 size=2>"
            assert "s3cret" not in repr(session) + repr(pool) + repr(pool.stats())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_forked_child_has_processes_of_its_own(server: LoopbackServer, options: ClaudeAgentOptions) -> None:
    """SES-74."""
    with SessionPool(options, size=1, prewarm=0) as pool:
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
    server: LoopbackServer, options: ClaudeAgentOptions, held: Any
) -> None:
    """SES-75: as Ctrl-C does in a console."""
    with SessionPool(options, size=1, prewarm=0) as pool:

        def interrupt() -> None:
            asyncio.run(held.asked())
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            pool.run_sync("Slow.")
        thread.join()
        server.respond = echo
        assert pool.run_sync("Quick.").text == "Quick."
