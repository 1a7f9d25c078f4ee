"""Two callers in turn on one process: each is asked for the own turns, and nobody for another's."""

import asyncio
import json
import threading
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from claude_agent_sdk import ClaudeAgentOptions, PermissionResultAllow, create_sdk_mcp_server, tool

from cc_loopback import JsonObject, LoopbackServer, Reply
from cc_session import Hook, HookResult, Policy, PoolLimits, Question, Questions, Rule, Session, SessionPool
from cc_session.hooks.calls import CallbackRunner, CallerGoneError
from cc_types import JsonValue

from .conftest import ask, calling, cancelled, results_of, use
from .test_questions import ASK, ORDER, asking, form


@tool("look", "Looks.", {})
async def look(_arguments: object) -> dict[str, Any]:
    return {"content": []}


SERVERS = {"own": create_sdk_mcp_server("own", tools=[look])}


CALLER = ContextVar("CALLER", default="nobody")


@dataclass(unsafe_hash=True)
class Callback:
    """A callback with state, equal to every other that was asked as often."""

    asked: int = 0
    callers: list[str] = field(default_factory=list[str], compare=False)

    async def __call__(self, *arguments: Any) -> Any:
        self.asked += 1
        self.callers.append(CALLER.get())
        match arguments:
            case (Question(),):
                return {"Which colour?": "Blue"}
            case (_, _, _):
                return PermissionResultAllow()
            case _:
                return HookResult()


async def test_a_lease_calls_its_own_callbacks_and_not_equal_ones_of_an_earlier_lease(
    server: LoopbackServer, options: ClaudeAgentOptions
) -> None:
    """SES-133: a hook, a question, and a policy's `ask`; with the same objects the process is used again."""
    server.respond = calling(ASK, use("look", "mcp__own__look"))
    options = asking(options, "default")
    async with SessionPool(options, limits=PoolLimits(size=1, prewarm=0), mcp_servers=SERVERS) as pool:
        for caller in ("Alice", "Bob"):
            CALLER.set(caller)
            hook, question, permission, condition = Callback(), Callback(), Callback(), list[str]()

            def is_looked_at(_input: object, condition: list[str] = condition) -> bool:
                return not condition.append(CALLER.get())

            async with pool.lease(
                hooks=[Hook("PreToolUse", hook)],
                questions=Questions(question),
                policy=Policy([Rule("mcp__own__look", "ask", when=is_looked_at)], default="ask", ask=permission),
            ) as session:
                await session.run("Go.")
            assert (hook.asked, question.asked, permission.asked) == (2, 1, 1)
            assert {*hook.callers, *question.callers, *permission.callers, *condition} == {caller}
            assert condition
        assert pool.stats().starts == 2

        server.respond = calling()
        starts, callback = pool.stats().starts, Callback()
        hooks = [Hook("UserPromptSubmit", callback)]
        for caller in ("Alice", "Bob"):
            CALLER.set(caller)
            async with pool.lease(hooks=hooks) as session:
                await session.run("Go.")
        assert pool.stats().starts == starts + 1
        assert callback.callers == ["Alice", "Bob"]


def test_a_call_runs_on_the_loop_of_its_turn_s_caller_and_never_for_another() -> None:
    """SES-93."""
    loops: list[asyncio.AbstractEventLoop] = []
    callers: list[str] = []

    async def look(_input: object) -> None:
        loops.append(asyncio.get_running_loop())
        callers.append(CALLER.get())

    first, second = asyncio.new_event_loop(), asyncio.new_event_loop()
    threads = [threading.Thread(target=loop.run_forever, daemon=True) for loop in (first, second)]
    for thread in threads:
        thread.start()

    async def call() -> None:
        runner = CallbackRunner(None)
        for loop, turn in ((first, "one"), (second, "two")):
            CALLER.set(turn)
            runner.begin(loop)
            await begin_turn(runner, turn)
            await runner.call(turn, look, {})
        await runner.call("one", look, {})
        await runner.call(None, look, {})  # as an old CLI sends it
        runner.leave()
        await runner.call("one", look, {})
        for turn in ("two", None, "three"):
            with pytest.raises(CallerGoneError):
                await runner.call(turn, look, {})
        CALLER.set("four")
        runner.begin(second)
        await begin_turn(runner, "four")
        await runner.call("four", look, {})
        with pytest.raises(CallerGoneError):
            await runner.call("two", look, {})
        runner.leave_all()
        for turn in ("one", "two", "four", None):
            with pytest.raises(CallerGoneError):
                await runner.call(turn, look, {})
        assert runner.loop is None  # it may belong to a thread that has ended, and holds what was scheduled there

    asyncio.run(call())
    assert loops == [first, second, first, second, first, second]
    assert callers == ["one", "two", "nobody", "two", "nobody", "four"]
    for loop, thread in zip((first, second), threads, strict=True):
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def begin_turn(runner: CallbackRunner, turn: str) -> None:
    """Tell a runner of a turn's id, as the CLI does."""
    [note] = runner.note_turns().hooks
    assert await note(cast(Any, {"prompt_id": turn}), None, {"signal": None}) == {}


@pytest.mark.worlds
async def test_a_form_of_a_server_that_an_abandoned_turn_has_called_is_declined(
    server: LoopbackServer, options: ClaudeAgentOptions
) -> None:
    """SES-93: a form does not name its turn, and could be the abandoned one's."""
    server.respond = calling(ORDER)
    asked, forms = asyncio.Event(), list[Question]()

    async def fill_in(question: Question) -> JsonValue:
        forms.append(question)
        asked.set()
        await asyncio.Event().wait()
        return {"size": 1}

    async with await Session.open(options, questions=Questions(fill_in), mcp_servers=form()) as session:
        turn = ask(session, "Go.")
        await asyncio.wait_for(asked.wait(), 30)
        await cancelled(turn)
        later = {**ORDER, "id": "toolu_later"}

        def respond(body: JsonObject) -> Reply:
            return "Done." if "toolu_later" in json.dumps(body["messages"]) else [later]

        server.respond = respond
        await session.run("Go on.")
    assert len(forms) == 1
    assert "decline" in json.dumps(results_of(server)["toolu_later"])


class StopProgramError(BaseException):
    """An exception that is not an `Exception`."""


ERRORS = (StopProgramError, GeneratorExit, SystemExit, StopIteration, asyncio.CancelledError, ValueError)
REFUSALS = {
    "hook": "raised",
    "when": "A rule about mcp__own__look could not be applied",
    "ask": "permission callback for mcp__own__look failed",
}


async def test_a_callback_that_raises_anything_denies_the_call_at_once(
    server: LoopbackServer, options: ClaudeAgentOptions, caplog: pytest.LogCaptureFixture
) -> None:
    """SES-135: a hook, a rule's `when`, a policy's `ask` and a question, plain functions and coroutine functions."""
    place, error = "", ValueError

    def answer(here: str, value: object) -> Any:
        if here == place:
            raise error("a secret")
        return value

    def plain(here: str, value: object) -> Any:
        def call(*_arguments: object) -> Any:
            return answer(here, value)

        return call

    def coroutine(here: str, value: object) -> Any:
        async def call(*_arguments: object) -> Any:
            return answer(here, value)

        return call

    for make in (plain, coroutine):
        rules = [Rule("mcp__own__look", "ask", when=plain("when", True))]
        async with (
            await Session.open(
                asking(options, "default"),
                mcp_servers=SERVERS,
                hooks=[Hook("PreToolUse", make("hook", HookResult()), matcher="mcp__own__look")],
                policy=Policy(rules, ask=make("ask", PermissionResultAllow())),
                questions=Questions(make("question", {"Which colour?": "Blue"})),
            ) as session,
            asyncio.timeout(30),
        ):
            for place in ("hook", "when", "ask", "question", ""):
                for error in ERRORS if place == "hook" else ERRORS[:1]:
                    calls = [{**ASK, "id": "toolu_a"}, use("b", "mcp__own__look")]
                    server.requests.clear()
                    caplog.clear()
                    server.respond = calling(*calls)
                    await session.reset()
                    await session.run("Go.")
                    results = results_of(server)
                    assert ("The user has not answered" in results["toolu_a"]) == (place == "question")
                    assert REFUSALS.get(place, "completed with no output") in results["toolu_b"], (place, error)
                    assert "a secret" not in str(results)
                    assert [record.exc_info is not None for record in caplog.records] == [True] * bool(place)
