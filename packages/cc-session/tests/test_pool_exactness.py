"""A lease of a used process: the requests equal a fresh process's."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, create_sdk_mcp_server, tool

from cc_loopback import Call, JsonObject, LoopbackServer
from cc_session import PoolLimits, Session, SessionPool, TurnError

Use = Callable[[Session, LoopbackServer], Awaitable[object]]

MARK = "Compare this."
OWN_PROMPT: Any = {"type": "preset", "preset": "claude_code"}

# Without the seal, the CLI requests a session title, once, in a request beside the conversation.
TITLE = "Write the title in the predominant language"

# Session id, and values that depend on time and connection.
DIFFERENT = {"connection", "content-length", "host", "x-claude-code-session-id"}


def respond(body: JsonObject) -> str | list[JsonObject]:
    """Call the tools named in the last prompt, in sequence, by lines `CALL name {json}`."""
    users = [message for message in body["messages"] if message["role"] == "user"]
    answers = 0
    while "tool_result" in json.dumps(users[-1 - answers]["content"]):
        answers += 1
    lines = text_of(users[-1 - answers]).splitlines()
    calls = [line.split(" ", 2)[1:] for line in lines if line.startswith("CALL ")]
    if answers >= len(calls):
        return "Done."
    name, arguments = calls[answers]
    return [{"type": "tool_use", "id": f"toolu_{answers}", "name": name, "input": json.loads(arguments)}]


def text_of(message: JsonObject) -> str:
    content = message["content"]
    blocks = [content] if isinstance(content, str) else [block.get("text", "") for block in content]
    return "\n".join(blocks)


@tool("echo", "Echo.", {"text": str})
async def echo(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": arguments["text"]}]}


ECHO = 'CALL mcp__tools__echo {"text": "Hi."}'
ECHOES = f"{ECHO}\n{ECHO}\n{ECHO}"

TOOLS = create_sdk_mcp_server("tools", tools=[echo])


def with_echo(options: ClaudeAgentOptions) -> ClaudeAgentOptions:
    return replace(options, mcp_servers={"tools": TOOLS}, allowed_tools=["mcp__tools__*"], max_turns=None)


def unsealed(options: ClaudeAgentOptions) -> ClaudeAgentOptions:
    off = ("CLAUDE_CODE_DISABLE", "CLAUDE_CODE_EFFORT", "DISABLE")
    env = {name: value for name, value in options.env.items() if not name.startswith(off)}
    return ClaudeAgentOptions(
        model=options.model, cwd=options.cwd, env=env, tools=["Bash"], setting_sources=[], permission_mode="dontAsk",
        extra_args={"no-session-persistence": None},
    )  # fmt: skip


def requests_of(server: LoopbackServer) -> list[tuple[JsonObject, dict[str, str]]]:
    """Bodies and headers of requests with the mark, without the parts that differ per process."""
    return [
        (without_ids(call), {name: value for name, value in call.headers.items() if name not in DIFFERENT})
        for call in server.calls
        if call.body is not None and MARK in (text := json.dumps(call.body)) and TITLE not in text
    ]


def without_ids(call: Call) -> JsonObject:
    assert call.body is not None
    user: JsonObject = json.loads(call.body["metadata"]["user_id"])
    return call.body | {"metadata": {name: value for name, value in user.items() if name != "session_id"}}


async def compared(session: Session, calls: str = "") -> None:
    await session.run(f"{MARK}\n{calls}")


class Bench:
    """Pools with one process that cases with the same options share, and a fresh process's requests.

    So a case follows others in the same process, and shows their side effects as well.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server: LoopbackServer
        self.pools: dict[str, SessionPool] = {}
        self._fresh: dict[tuple[str, str], list[Any]] = {}

    def pool(self, options: ClaudeAgentOptions) -> SessionPool:
        return self.pools.setdefault(repr(options), SessionPool(options, limits=PoolLimits(size=1, prewarm=0)))

    async def fresh(self, options: ClaudeAgentOptions, calls: str = "") -> list[Any]:
        """Return the requests from a process without earlier work."""
        key = repr(options), calls
        if key not in self._fresh:
            self.server.calls.clear()
            async with await Session.open(options) as session:
                await compared(session, calls)
            self._fresh[key] = requests_of(self.server)
        return self._fresh[key]

    async def after(self, options: ClaudeAgentOptions, use: Use, calls: str = "") -> tuple[list[Any], bool]:
        """Return a second lease's requests, and if it had the same process."""
        pool = self.pool(options)
        async with pool.lease() as session:
            pid = session.pid
            await use(session, self.server)
        async with pool.lease() as session:
            self.server.calls.clear()
            await compared(session, calls)
            return requests_of(self.server), session.pid == pid


@pytest.fixture(scope="module")
def shared_bench(worker_api: LoopbackServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    bench = Bench(tmp_path_factory.mktemp("exactness"))
    yield bench
    for pool in bench.pools.values():
        pool.close_sync()


@pytest.fixture
def options(options: ClaudeAgentOptions, shared_bench: Bench) -> ClaudeAgentOptions:
    return replace(options, cwd=shared_bench.folder)


@pytest.fixture
def bench(server: LoopbackServer, shared_bench: Bench) -> Bench:
    server.respond = respond
    shared_bench.server = server
    return shared_bench


@pytest.fixture(autouse=True)
def temporary(shared_bench: Bench) -> None:
    """Not a folder for each test, which processes that outlive it would lose."""


async def nothing(_session: Session, _server: LoopbackServer) -> None:
    pass


async def talk(session: Session, _server: LoopbackServer) -> None:
    for text in ("One.", "Two.", "x" * 200_000):
        await session.run(text)


async def history(session: Session, _server: LoopbackServer) -> None:
    await session.add_user("My name is Ada.")
    await session.add_assistant("Hello, Ada.", model="claude-sonnet-5")
    await session.run("What is my name?")
    await session.add_user("Never mind.")


async def unanswered_history(session: Session, _server: LoopbackServer) -> None:
    await session.add_user("My name is Ada.")


async def partial_rewind(session: Session, _server: LoopbackServer) -> None:
    await session.run("One.")
    await session.run("Two.")
    assert session.last_user_uuid is not None
    assert await session.rewind(session.last_user_uuid)
    await session.run("Three.")


async def fail(session: Session, server: LoopbackServer, **fault: Any) -> None:
    """Make a turn fail; another or a retried request may have taken the fault."""
    for _ in range(5):
        server.fail_next(**fault)
        try:
            await session.run("Fail.")
        except TurnError:
            return
    pytest.fail(f"no turn failed with {fault}")


async def errors(session: Session, server: LoopbackServer) -> None:
    for status in (401, 429, 500, 529):
        await fail(session, server, status=status)


async def refusals(session: Session, server: LoopbackServer) -> None:
    """Without the seal, the CLI leaves out a header from then on, and does not report it."""
    await fail(session, server, status=400)
    await fail(session, server, after_events=2)


async def held_turn(session: Session, server: LoopbackServer) -> "asyncio.Task[Any]":
    called = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def hold(body: JsonObject) -> Any:
        if "Never to be answered." not in str(body["messages"][-1]) or TITLE in str(body):
            return respond(body)  # the CLI may send an additional request
        loop.call_soon_threadsafe(called.set)
        await asyncio.Event().wait()
        return ""

    server.respond = hold
    turn = asyncio.ensure_future(session.run("Never to be answered."))
    await asyncio.wait_for(called.wait(), 10)
    server.respond = respond
    return turn


async def interrupted(session: Session, server: LoopbackServer) -> None:
    await session.run("One.")
    turn = await held_turn(session, server)
    await session.interrupt()
    with pytest.raises(TurnError):
        await turn
    await session.run("Two.")


async def cancelled(session: Session, server: LoopbackServer) -> None:
    turn = await held_turn(session, server)
    turn.cancel()
    await asyncio.wait({turn})


async def still_running(session: Session, server: LoopbackServer) -> None:
    turn = await held_turn(session, server)
    turn.add_done_callback(lambda turn: turn.cancelled() or turn.exception())


async def stream_left_early(session: Session, _server: LoopbackServer) -> None:
    async with session.stream("Hello.") as messages:
        await anext(messages)
    async with session.stream("Hello.") as messages:
        async for _message in messages:
            pass


async def other_model(session: Session, _server: LoopbackServer) -> None:
    await session.control("set_model", model="claude-opus-5-5")
    await session.run("One.")
    await session.control("set_model", model="haiku")
    await session.run("Two.")


async def other_mode(session: Session, _server: LoopbackServer) -> None:
    await session.control("set_permission_mode", mode="acceptEdits")
    await session.run("One.")


async def other_parameters(session: Session, _server: LoopbackServer) -> None:
    await session.set_env({"CLAUDE_CODE_EXTRA_BODY": '{"temperature": 0.5}', "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "7"})
    await session.run("One.")


TALKS = [
    nothing, talk, history, unanswered_history, partial_rewind, errors, refusals, interrupted, cancelled, still_running,
    stream_left_early, other_model, other_mode, other_parameters,
]  # fmt: skip


async def call_echo(session: Session, _server: LoopbackServer) -> None:
    await session.run(ECHOES)
    await session.run("CALL mcp__tools__unknown {}")


async def change_folder(session: Session, _server: LoopbackServer) -> None:
    await session.run('CALL Bash {"command": "mkdir -p below && cd below"}')


async def run_a_command(session: Session, _server: LoopbackServer) -> None:
    await session.run("/model claude-opus-5-5", verbatim=False)


async def plan(session: Session, _server: LoopbackServer) -> None:
    await session.control("set_permission_mode", mode="plan")
    await session.run("One.")


async def set_another_variable(session: Session, _server: LoopbackServer) -> None:
    await session.set_env({"CLAUDE_CODE_EFFORT_LEVEL": "low"})


def unchanged(options: ClaudeAgentOptions) -> ClaudeAgentOptions:
    return options


def model_by_settings(options: ClaudeAgentOptions) -> ClaudeAgentOptions:
    return replace(options, model=None, settings='{"model": "haiku"}')


def model_by_environment(options: ClaudeAgentOptions) -> ClaudeAgentOptions:
    return replace(options, model=None, env={**options.env, "ANTHROPIC_MODEL": "claude-sonnet-4-5"})


def all_tools(options: ClaudeAgentOptions) -> ClaudeAgentOptions:
    return replace(with_echo(unsealed(options)), permission_mode="bypassPermissions")


# Earlier work in a process with changed options, calls in the compared turn, and if the process is used for it.
CASES: list[tuple[Callable[[ClaudeAgentOptions], ClaudeAgentOptions], Use, str, bool]] = [
    *((unchanged, use, "", True) for use in TALKS),
    *((unsealed, use, "", True) for use in (talk, errors, interrupted, other_model)),
    (with_echo, call_echo, ECHOES, True),
    (model_by_settings, other_model, "", False),
    (model_by_environment, other_model, "", True),
    (lambda options: replace(unsealed(options), system_prompt=OWN_PROMPT), other_model, "", False),
]
QUICK_CASES = 6  # one for each kind of earlier work
REPLACED = [(run_a_command, ""), (plan, ""), (set_another_variable, ""), (call_echo, ECHOES)]
SLOW_CASES = [(all_tools, *case, False) for case in (*REPLACED, (change_folder, 'CALL Bash {"command": "pwd"}'))]


@pytest.mark.parametrize(
    ("change", "use", "calls", "is_used"),
    [
        *CASES[:QUICK_CASES],
        *(pytest.param(*case, marks=pytest.mark.worlds) for case in CASES[QUICK_CASES:]),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW_CASES),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_a_process_is_reused_only_if_earlier_work_leaves_no_trace(
    bench: Bench, options: ClaudeAgentOptions, change: Any, use: Use, calls: str, is_used: bool
) -> None:
    """SES-10, SES-62, SES-63: without the seal, the CLI adds messages and offers tools.

    It then keeps a working folder, a token count and more, which a rewind does not undo.
    """
    options = change(options)

    requests, is_same_process = await bench.after(options, use, calls)

    assert requests == await bench.fresh(options, calls)
    assert len(requests) == 1 + calls.count("CALL")
    assert is_same_process == is_used


CHANGES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    *(({"model": model}, {}) for model in ("claude-opus-5-5", "haiku", None)),
    ({"effort": "low"}, {"output_config": {"effort": "low"}}),
    ({"thinking": {"type": "disabled"}}, {"thinking": {"type": "disabled"}}),
]


@pytest.mark.parametrize(
    ("values", "sent", "change"),
    [
        pytest.param(*case, change, marks=pytest.mark.worlds if case[1] else pytest.mark.slow)
        for case in CHANGES
        for change in (None, unsealed)
        if change is None or "thinking" not in case[0]
    ],
)
async def test_a_changed_setting_sends_the_requests_of_a_fresh_process(
    bench: Bench, options: ClaudeAgentOptions, values: dict[str, Any], sent: dict[str, Any], change: Any
) -> None:
    """SES-61, SES-62, SES-139: only a sealed process changes its thinking."""
    thinks: Any = {"type": "enabled", "budget_tokens": 2048} if "thinking" in values else None
    options = replace(options if change is None else change(options), effort="high", thinking=thinks)
    pool = bench.pool(options)
    async with pool.lease() as session:
        pid = session.pid
        await session.run("One.")
    async with pool.lease(**values) as session:
        bench.server.calls.clear()
        await compared(session)
        assert session.pid == pid
    requests = requests_of(bench.server)

    assert all({name: body[name] for name in sent} == sent for body, _ in requests)
    assert requests == await bench.fresh(replace(options, **values))


@pytest.mark.worlds
async def test_a_model_named_in_the_system_prompt_has_separate_processes(
    bench: Bench, options: ClaudeAgentOptions
) -> None:
    """SES-61."""
    options = replace(unsealed(options), system_prompt=OWN_PROMPT)
    pool = bench.pool(options)
    async with pool.lease():
        pass  # a process that cannot serve the next lease
    async with pool.lease(model="haiku") as session:
        bench.server.calls.clear()
        await compared(session)
    requests = requests_of(bench.server)
    assert pool.stats().recycled["evicted"] == 1

    assert requests == await bench.fresh(replace(options, model="haiku"))
