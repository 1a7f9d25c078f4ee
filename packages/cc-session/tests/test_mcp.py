"""MCP servers in a running session: four kinds, ready, slow, failed, killed, replaced."""

import asyncio
import itertools
import os
import signal
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, cast

import psutil
import pytest
import uvicorn
from claude_agent_sdk import ClaudeAgentOptions, create_sdk_mcp_server, tool
from mcp.server.mcpserver import MCPServer
from sse_starlette.sse import AppStatus
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from cc_loopback import LoopbackServer
from cc_session import (
    HTTPServer,
    McpServer,
    McpServerFailedError,
    Policy,
    Rule,
    Session,
    SSEServer,
    StdioServer,
)
from cc_session.errors import CLIConnectionError

from .conftest import STDIO_SERVER, ask, calling, results_of, say, sealed, until, use

if sys.platform == "win32":
    raise pytest.skip.Exception("needs POSIX", allow_module_level=True)


def stdio(name: str | None = None, **env: str) -> StdioServer:
    named = {} if name is None else {"NAME": name}
    return StdioServer(sys.executable, ["-S", STDIO_SERVER], {**named, **env})


# The CLI knows a call by the id, also in later turns.
_numbers = itertools.count(1)


def tools_of(server: LoopbackServer) -> list[str]:
    return [tool["name"] for tool in server.requests[-1]["tools"]]


def named(word: str) -> MCPServer[Any]:
    server = MCPServer("named")

    @server.tool(name=word)
    async def say() -> str:
        return f"{word} says True"

    return server


async def call(server: LoopbackServer, session: Session, *names: str) -> dict[str, str]:
    """Make the model call tools, and return the results that it received."""
    calls = [use(next(_numbers), name) for name in names]
    server.respond = calling(*calls)
    await ask(session, "Go.")
    results = results_of(server)
    return {call["name"]: results[call["id"]] for call in calls}


class Guarded:
    """An application that accepts clients with a header, and records them."""

    def __init__(self, app: Starlette) -> None:
        self._app = app
        self.headers: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self.headers.append(dict(scope["headers"]).get(b"authorization", b"").decode())
        await cast(ASGIApp, self._app)(scope, receive, send)


@asynccontextmanager
async def served(app: ASGIApp) -> AsyncGenerator[str]:
    """Serve an application on loopback; return its URL."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, timeout_graceful_shutdown=1))
    # In a separate thread, where the signal handlers do no harm.
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:  # noqa: ASYNC110  # there is no event for it
            await asyncio.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await asyncio.to_thread(thread.join, 5)


@pytest.fixture(scope="module")
async def process(worker_api: LoopbackServer) -> AsyncIterator[Session]:
    async with await Session.open(sealed(worker_api), mcp_servers={}) as session:
        yield session


@pytest.fixture
async def session(process: Session, server: LoopbackServer) -> AsyncIterator[Session]:
    """A session without MCP servers, in a process that this module's tests share."""
    await process.reset()
    yield process
    await process.set_mcp_servers({})


async def test_servers_of_all_kinds_are_ready_when_the_session_is(
    options: ClaudeAgentOptions, server: LoopbackServer, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SES-55, SES-57: their tools may be called, and their secrets are in no command line, file, repr or status."""

    @tool("dict", "Says so.", {})
    async def say(arguments: Any) -> Any:
        return {"content": [{"type": "text", "text": "dict says True"}]}

    # A signal that ended another test's uvicorn server cuts off all later SSE streams in this process.
    monkeypatch.setattr(AppStatus, "should_exit", False)
    http, sse = Guarded(named("http").streamable_http_app()), Guarded(named("sse").sse_app())
    async with served(http) as http_url, served(sse) as sse_url:
        servers: Any = {
            "a": stdio("stdio", SECRET="stdio says True", TOKEN="s3cret"),
            "b": HTTPServer(f"{http_url}/mcp", {"Authorization": "Bearer s3cret"}),
            "c": SSEServer(f"{sse_url}/sse", {"Authorization": "Bearer s3cret"}),
            "d": named("object"),
            "e": create_sdk_mcp_server("x", tools=[say]),
        }
        async with await Session.open(options, mcp_servers=servers) as session:
            statuses = await session.mcp_status()
            assert {status["status"] for status in statuses} == {"connected"}
            assert "s3cret" not in str(statuses) + repr(session)
            for path in (Path(f"/proc/{session.pid}/cmdline"), *temporary.rglob("*")):  # noqa: ASYNC240
                assert not path.is_file() or b"s3cret" not in path.read_bytes(), path
            names = ["mcp__a__stdio", "mcp__b__http", "mcp__c__sse", "mcp__d__object", "mcp__e__dict"]
            results = await call(server, session, *names)

    assert sorted(tools_of(server)) == names
    assert all(f"{name.split('__')[-1]} says True" in result for name, result in results.items())
    assert {*http.headers, *sse.headers} == {"Bearer s3cret"}


async def test_servers_that_do_not_start_are_an_error(
    options: ClaudeAgentOptions, server: LoopbackServer, temporary: Path
) -> None:
    """SES-56: with the server's message, and nothing remains."""
    failing: dict[str, tuple[McpServer, str]] = {
        "missing": (StdioServer("/nowhere/program"), "ENOENT"),
        "ends": (StdioServer(sys.executable, ["-c", ""]), "onnection closed"),
        "refused": (HTTPServer("http://127.0.0.1:1/mcp"), "ECONNREFUSED"),
        "refused-sse": (SSEServer("http://127.0.0.1:1/sse"), "ECONNREFUSED"),
        "nothing": (HTTPServer(f"{server.url}/nothing"), "not found"),
        "nothing-sse": (SSEServer(f"{server.url}/nothing"), "404"),
    }
    servers = {name: server for name, (server, _) in failing.items()}
    with pytest.raises(McpServerFailedError, match="ENOENT") as raised:
        await Session.open(options, mcp_servers={"good": stdio(), **servers})

    assert {*raised.value.servers} == {*failing}
    for name, (_, words) in failing.items():
        assert words in raised.value.servers[name], name
    assert not [*temporary.glob("cc-session-*")]  # noqa: ASYNC240


@pytest.mark.worlds
async def test_servers_of_the_options_can_be_waited_for(options: ClaudeAgentOptions, tmp_path: Path) -> None:
    """SES-57: the CLI does not wait for them."""
    slow = stdio("slow", UNTIL=str(tmp_path / "ready"))
    options = replace(options, mcp_servers={"slow": cast(Any, slow.to_wire())})
    async with await Session.open(options) as session:
        [before] = await session.mcp_status()
        assert before["status"] == "pending"
        [early] = await session.wait_mcp(timeout=0.1, require=False)
        assert early["status"] == "pending"
        with pytest.raises(McpServerFailedError, match="not ready in time"):
            await session.wait_mcp(timeout=0.1)
        (tmp_path / "ready").touch()
        [after] = await session.wait_mcp(timeout=20)
        assert (after["status"], [tool["name"] for tool in after.get("tools", [])]) == ("connected", ["slow"])


@pytest.mark.deaths
async def test_a_killed_server_is_connected_again_by_the_next_call(session: Session, server: LoopbackServer) -> None:
    """SES-59, SES-56."""
    await session.set_mcp_servers({"a": stdio()})
    pids: list[int] = []
    for _ in range(2):
        result = await call(server, session, "mcp__a__pid")
        pids.append(int("".join(filter(str.isdigit, result["mcp__a__pid"]))))
        os.kill(pids[-1], signal.SIGKILL)
        await until(lambda: not psutil.pid_exists(pids[-1]))
    assert pids[0] != pids[1]


@pytest.mark.worlds
async def test_replaced_servers_are_in_the_next_request_and_no_others(session: Session, server: LoopbackServer) -> None:
    """SES-58: every kind, in-process servers with the same name included, in a continued conversation."""
    sets: list[tuple[dict[str, Any], list[str]]] = [
        ({"d": stdio("one"), "e": named("two")}, ["mcp__d__one", "mcp__e__two"]),
        ({"f": stdio("three"), "e": named("four")}, ["mcp__e__four", "mcp__f__three"]),
        ({"e": named("five"), "d": stdio("one")}, ["mcp__d__one", "mcp__e__five"]),
        ({"f": stdio("three")}, ["mcp__f__three"]),
        ({"e": named("two")}, ["mcp__e__two"]),
        ({}, []),
    ]
    for servers, names in sets:
        statuses = await session.set_mcp_servers(servers)
        assert {status["name"]: status["status"] for status in statuses} == dict.fromkeys(servers, "connected")
        results = await call(server, session, *names)
        assert sorted(tools_of(server)) == names
        assert not [result for result in results.values() if "rror" in result or "denied" in result]


@pytest.mark.worlds
async def test_a_replacement_whose_caller_is_cancelled_spoils_no_later_one(
    session: Session, server: LoopbackServer
) -> None:
    """SES-58: at whatever point; cut off in the middle, one in fifteen left a connected server without tools."""
    chance, servers = Random(3), [named("again") for _ in range(3)]
    for _ in range(60):
        some: dict[str, McpServer] = {"again": chance.choice(servers)} if chance.random() < 0.8 else {}
        replacing = asyncio.ensure_future(session.set_mcp_servers(some))
        await asyncio.sleep(chance.uniform(0, 0.02))
        replacing.cancel()
        await asyncio.gather(replacing, return_exceptions=True)
        [status] = await session.set_mcp_servers({"again": chance.choice(servers)})
        assert [tool["name"] for tool in status.get("tools", [])] == ["again"]
    assert "again says True" in str(await call(server, session, "mcp__again__again"))


@pytest.mark.worlds
async def test_other_servers_stay_when_the_set_is_replaced(options: ClaudeAgentOptions, server: LoopbackServer) -> None:
    """SES-58: in-process servers and others."""
    own = create_sdk_mcp_server("own", tools=[tool("mine", "A tool.", {})(say({}))])
    options = replace(options, mcp_servers={"theirs": cast(Any, stdio("theirs").to_wire()), "own": own})
    async with await Session.open(options, mcp_servers={"a": stdio("one")}) as session:
        with pytest.raises(CLIConnectionError, match="keeps the texts of tools that an earlier MCP server named a had"):
            await session.set_mcp_servers({"a": stdio("two")})
        await session.set_mcp_servers({"b": stdio("two")})
        await session.wait_mcp()
        server.respond = calling()
        await ask(session, "Hello.")
        for name in ("theirs", "own"):
            with pytest.raises(ValueError, match="there is already an MCP server"):
                await session.set_mcp_servers({name: stdio()})
    assert sorted(tools_of(server)) == ["mcp__b__two", "mcp__own__mine", "mcp__theirs__theirs"]


async def test_a_server_is_switched_off_in_one_session(server: LoopbackServer, tmp_path: Path) -> None:
    """SES-58: Claude Code's own switch would hold for all later sessions in the folder."""
    near = create_sdk_mcp_server("near", tools=[tool("mine", "A tool.", {})(say({}))])["instance"]
    options, mine, right = replace(sealed(server), cwd=tmp_path), "mcp__near__mine", "mcp__right__two"
    async with await Session.open(options, mcp_servers={"right": stdio("two"), "near": near}) as session:
        for name, names in (("near", [right]), ("near", [mine, right]), ("right", [mine])):
            await session.toggle_mcp(name, any(name in one for one in names))
            await ask(session, "Hello.")
            assert sorted(tools_of(server)) == names
        await (await Session.open(options, mcp_servers={"right": stdio("two")})).close()
        with pytest.raises(ValueError, match="there is no MCP server other; there is near"):
            await session.toggle_mcp("other", True)
        with pytest.raises(TypeError):
            await session.set_mcp_servers({"wrong": cast(Any, None)})
        await session.toggle_mcp("right", True)  # a refused replacement has forgotten nothing


async def test_a_server_is_connected_anew(session: Session, server: LoopbackServer, tmp_path: Path) -> None:
    """SES-56, SES-58: if it still exists."""
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} -S {STDIO_SERVER}\n")
    program.chmod(0o700)
    await session.set_mcp_servers({"own": StdioServer(str(program))})
    results = [await call(server, session, "mcp__own__pid")]
    await session.reconnect_mcp("own")
    results.append(await call(server, session, "mcp__own__pid"))
    assert results[0] != results[1]
    program.unlink()
    for name, words in (("own", "own: "), ("nobody", "nobody: Server not found")):
        with pytest.raises(McpServerFailedError, match=words):
            await session.reconnect_mcp(name)


async def test_a_server_of_this_process_runs_where_it_was_given(
    options: ClaudeAgentOptions, server: LoopbackServer
) -> None:
    """SES-74: on the owner's loop, and on the background loop when the owner's is closed."""
    loops: list[asyncio.AbstractEventLoop] = []
    mine: Any = MCPServer("mine")

    @mine.tool()
    async def where() -> str:
        loops.append(asyncio.get_running_loop())
        return "here"

    async def first() -> tuple[Session, asyncio.AbstractEventLoop]:
        session = await Session.open(options, mcp_servers={"a": mine})
        await call(server, session, "mcp__a__where")
        return session, asyncio.get_running_loop()

    session, there = await asyncio.to_thread(lambda: asyncio.run(first()))
    async with session:
        assert loops == [there]
        assert "here" in str(await call(server, session, "mcp__a__where"))
    assert loops[1] not in (there, asyncio.get_running_loop())


async def test_read_only_tools_run_in_parallel_and_others_in_sequence(session: Session, server: LoopbackServer) -> None:
    """SES-60."""
    most = [0, 0]

    def working(is_read_only: bool) -> Any:
        running = 0
        all_run = asyncio.Event()
        mine: Any = MCPServer("mine")

        @mine.tool(annotations={"readOnlyHint": is_read_only})
        async def work() -> str:
            nonlocal running
            running += 1
            most[is_read_only] = max(most[is_read_only], running)
            if running == 3:
                all_run.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(10 if is_read_only else 0.2):
                    await all_run.wait()
            running -= 1
            return "done"

        return mine

    await session.set_mcp_servers({"one": working(False), "all": working(True)})
    for name in ("one", "all"):
        await call(server, session, *[f"mcp__{name}__work"] * 3)
    assert most == [1, 3]


@pytest.mark.worlds
async def test_with_a_policy_a_sealed_session_does_not_allow_server_tools(
    options: ClaudeAgentOptions, server: LoopbackServer
) -> None:
    """SES-50, SES-55."""
    policy = Policy([Rule("mcp__a__*", "allow")])
    async with await Session.open(options, policy=policy, mcp_servers={"a": stdio(), "b": stdio()}) as session:
        results = await call(server, session, "mcp__a__pid", "mcp__b__pid")
    assert {name: "denied" in result for name, result in results.items()} == {"mcp__a__pid": False, "mcp__b__pid": True}
