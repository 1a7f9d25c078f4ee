"""Processes end with the transport, in every way, and no caller waits for ever."""

import asyncio
import gc
import re
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import anyio
import httpx2
import pytest

from cc_messages import ClaudeCodeTransport
from cc_session import Timeouts
from warm_clients.api_data import BODY, always
from warm_clients.fixtures import Connect, MakeAPI, Processes
from warm_clients.waiting import eventually, wait_for_ever

pytestmark = pytest.mark.deaths


async def test_closing_ends_the_processes_and_a_later_request_starts_new_ones(
    connect: Connect, processes: Processes
) -> None:
    client = connect(size=1)
    await client.ask("one")
    before = client.transport.pids
    await client.transport.aclose()
    assert not processes()
    assert not client.transport.pids
    assert (await client.ask("two")).status == 200
    assert client.transport.pids != before
    await client.transport.aclose()
    await client.transport.aclose()


async def test_the_end_of_a_login_leaves_a_process_that_another_transport_with_it_used_last(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MSG-185"""
    monkeypatch.setattr("cc_messages.process.request_process._UNWANTED_SECONDS", 0)
    pool = connect(size=1).transport
    first, second = (pool.with_login({"ANTHROPIC_API_KEY": "the-same"}) for _ in range(2))
    pids: list[list[int]] = []
    for transport in (first, second, second):
        request = httpx2.Request("POST", "http://claude/v1/messages", json=BODY)
        response = await transport.handle_async_request(request)
        await response.aread()
        pids.append(pool.pids)
        if transport is second:
            first.end_login()
    assert pids[0] == pids[1] == pids[2]


async def test_closing_ends_what_runs_waits_and_starts(connect: Connect, processes: Processes) -> None:
    """MSG-E08"""
    client = connect(size=2)
    client.answers(wait_for_ever)
    tasks = [asyncio.create_task(client.ask("one", stream=index == 0)) for index in range(2)]
    await eventually(lambda: len(client.api.requests) == 2)
    tasks.append(asyncio.create_task(client.ask("three")))
    await eventually(lambda: client.transport.stats().waiting == 1)
    with anyio.fail_after(20):
        await client.transport.aclose()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [httpx2.ReadError] * 3
    assert not processes()
    assert client.transport.stats().running == 0


async def test_closing_while_a_process_starts_leaves_none(connect: Connect, processes: Processes) -> None:
    client = connect(timeouts=Timeouts(close=0.2))
    task = asyncio.create_task(client.ask("one"))
    await eventually(processes)
    with anyio.fail_after(20):
        await client.transport.aclose()
        with pytest.raises(httpx2.ReadError, match="closed"):
            await task
    await eventually(lambda: not processes())
    assert not client.transport.pids


async def test_closing_during_a_stream_is_an_error_for_the_reader(connect: Connect, make_api: MakeAPI) -> None:
    """MSG-E07"""
    client = connect(api=make_api(always("word " * 2000), event_delay=0.03))
    with anyio.fail_after(20):
        async with client.stream("one") as response:
            chunks = response.aiter_raw()
            await anext(chunks)
            await client.transport.aclose()
            with pytest.raises(httpx2.ReadError, match="closed while a request was being answered"):
                [chunk async for chunk in chunks]


async def test_a_transport_that_is_forgotten_takes_its_processes_along(make_api: MakeAPI, processes: Processes) -> None:
    """A response that is still read keeps them, and no longer."""
    api = make_api(always("word " * 200), event_delay=0.01)
    client = httpx2.AsyncClient(transport=ClaudeCodeTransport(env=api.env()))
    request = client.build_request("POST", "http://claude/v1/messages", json={**BODY, "stream": True}, timeout=20)
    response = await client.send(request, stream=True)
    del client
    gc.collect()
    assert processes()
    assert b"message_stop" in await response.aread()
    gc.collect()
    await eventually(lambda: not processes())


async def test_a_process_that_nobody_uses_is_ended(connect: Connect, processes: Processes) -> None:
    """MSG-19, MODEL-63, SES-66"""
    client = connect(idle_seconds=0.1)
    assert (await client.ask("one")).status == 200
    await eventually(lambda: not client.transport.pids)
    await eventually(lambda: not processes())
    assert (await client.ask("two")).status == 200


async def test_answers_leave_no_file_and_no_text_on_disk(
    connect: Connect, make_api: MakeAPI, private_temp_folder: Path
) -> None:
    """MSG-29"""
    api = make_api(always("The answer."))
    configuration = Path(api.env()["CLAUDE_CONFIG_DIR"])

    def files(folder: Path) -> list[Path]:
        return [path for path in folder.rglob("*") if path.is_file()]

    def with_text() -> Generator[Path]:
        for path in files(private_temp_folder):
            with suppress(FileNotFoundError):  # the CLI may replace the configuration at any time
                if re.search(b"The (prompt|answer)", path.read_bytes()):
                    yield path

    client = connect(api=api, size=1)
    for stream in (False, True):
        assert (await client.ask("The prompt.", stream=stream)).status == 200
    assert {path.name for path in files(configuration / "sessions")} <= {f"{client.transport.pids[0]}.json"}
    assert [*with_text()] == []

    await client.transport.aclose()
    assert [*with_text()] == []
    # Each start writes these files, without an answer too: configuration, backup, and built-in plugins.
    names = {path.relative_to(configuration).parts[0] for path in files(configuration)}
    assert names <= {".claude.json", "backups", "plugins"}
