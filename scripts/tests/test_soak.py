"""The parts of scripts/soak: prompts and answers, the requests hit by faults, leaks, the plan, the command."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import os
import stat
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from anyio import to_thread
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from soak.aim import Aim
from soak.answers import FAILED, MARK, MixedUpError, marks_of, respond
from soak.api import Api
from soak.command import listing, parser, settings_of
from soak.faults import FAULTS
from soak.memory import Memory
from soak.noise import Noise
from soak.plan import planned, round_seconds
from soak.rest import end_orphans, left_over, stable
from soak.room import Room, room
from soak.soak import KINDS, Settings


def body(*contents: Any, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content} for content in contents], **more}


def result(text: str, *, is_error: bool = False) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "content": [{"type": "text", "text": text}], "is_error": is_error}]


# The model's side.


async def test_answer_has_the_mark_of_the_prompt_in_the_requested_format() -> None:
    text = await respond(body("Find <17>."))
    called = await respond(body("Find <17>.", tools=[{"name": "final_result"}]))
    native = await respond(body("Find <17>.", output_config={"format": {}}))

    assert isinstance(text, str)
    assert MARK.findall(text) == ["<17>"]
    assert called == [{"type": "tool_use", "name": "final_result", "input": {"mark": "<17>"}}]
    assert json.loads(str(native)) == {"mark": "<17>"}


@pytest.mark.parametrize("name", ["look", "mcp__pydantic_tools__look"])
async def test_tool_is_called_with_the_mark_and_its_result_or_failure_is_in_the_answer(name: str) -> None:
    tools = [{"name": "other"}, {"name": name}]

    assert await respond(body("Find <17>.", tools=tools)) == [
        {"type": "tool_use", "name": name, "input": {"mark": "<17>"}}
    ]
    assert "saw <17>" in str(await respond(body("Find <17>.", result("saw <17>"), tools=tools)))
    assert FAILED in str(await respond(body("Find <17>.", result("no", is_error=True), tools=tools)))


async def test_marks_are_found_in_texts_and_blocks_and_a_request_with_two_is_rejected() -> None:
    assert marks_of(body("a <1>", [{"type": "text", "text": "b <2>"}])) == ["<1>", "<2>"]
    with pytest.raises(MixedUpError):
        await respond(body("Find <17>.", result("saw <18>")))


# Requests hit by faults.


def test_each_fault_hits_one_of_the_next_requests() -> None:
    one, several = Aim(), Aim()
    one.place(0, arrived=2)
    for fault, arrived in enumerate((0, 0, 1)):
        several.place(fault, arrived)

    assert (one.waiting(2), several.waiting(1)) == (1, 2)
    assert one.take(["<1>", "<2>", "<3>", "<4>"]) == {0: "<3>"}
    assert several.take(["<1>", "<2>", None]) == {0: "<1>", 1: "<2>", 2: None}
    assert one.waiting(0) == 0


def test_deleted_requests_still_count() -> None:
    aim = Aim()
    aim.place(0, arrived=1)

    assert aim.take(["<1>"]) == {}
    aim.place(1, arrived=0)
    assert aim.take(["<2>", "<3>"]) == {0: "<2>", 1: "<3>"}
    aim.place(2, arrived=0)
    assert aim.take(["<4>"]) == {2: "<4>"}


def ask(url: str, mark: str) -> int | None:
    """Ask the API, and return the status; None if it cannot be reached."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    try:
        connection.request("POST", "/v1/messages", json.dumps({**body(f"Find {mark}."), "model": "m", "max_tokens": 9}))
        return connection.getresponse().status
    except OSError:
        return None
    finally:
        connection.close()


async def test_api_fails_on_command_and_reports_the_hit_requests_until_it_is_drained(tmp_path: Path) -> None:
    async with Api(str(tmp_path)) as api:
        url = api.env["ANTHROPIC_BASE_URL"]
        await api.fail(5, status=529)
        # The first request adds the fault, and the second one is hit.
        statuses = [await to_thread.run_sync(ask, url, mark) for mark in ("<1>", "<2>", "<3>")]
        await api.update()
        assert (statuses, api.hits, api.requests, api.errors) == ([200, 529, 200], {"<2>": {5}}, 3, [])

        await api.stop()
        assert await to_thread.run_sync(ask, url, "<4>") is None
        await api.start()
        assert await to_thread.run_sync(ask, url, "<5>") == 200

        for number in range(3):
            await api.fail(number, status=500)
        await to_thread.run_sync(ask, url, "<6>")
        await api.fail(3, status=500)
        await api.drain()
        assert await to_thread.run_sync(ask, url, "<7>") == 200
        await api.update()

    assert api.hits == {"<2>": {5}}
    assert os.listdir(tmp_path) == []


# The folder.


def test_temporary_files_go_to_the_folder_which_is_removed_afterwards() -> None:
    before, variable = tempfile.gettempdir(), os.environ.get("TMPDIR")
    with room() as made:
        Path(tempfile.mkdtemp(), "file").touch()
        assert len([*made.path.iterdir()]) == 1

    assert (tempfile.gettempdir(), os.environ.get("TMPDIR")) == (before, variable)
    assert not made.path.exists()


def test_full_folder_accepts_no_files_until_the_end_of_the_fault(tmp_path: Path) -> None:
    with Room(tmp_path, "read-only folder").full():
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o500
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700
    assert [*tmp_path.iterdir()] == []


# Leaks.


@pytest.mark.slow
async def test_each_leak_is_reported(tmp_path: Path) -> None:
    before = await stable(tmp_path)  # other tests of this process may have left closing resources
    assert await left_over(before, tmp_path, seconds=5) == ([], frozenset())
    descriptor = os.open(tmp_path / "left.txt", os.O_CREAT | os.O_RDONLY)
    waiting = asyncio.ensure_future(asyncio.Event().wait())
    process = await asyncio.create_subprocess_exec("sleep", "60")
    try:
        await asyncio.sleep(0)
        told, files = await left_over(before, tmp_path, seconds=0)
    finally:
        os.close(descriptor)
        waiting.cancel()
        process.kill()
        await process.wait()
        del process  # asyncio's own object has a future without a waiter

    assert files == {"left.txt"}
    assert "file left.txt" in told
    assert any(line.startswith("process ") and "sleep 60" in line for line in told)
    assert any("descriptors" in line and "left.txt" in line for line in told)
    assert any("Event.wait" in line for line in told)
    assert (await left_over(before, tmp_path, files, seconds=5))[0] == []


async def test_tasks_left_by_pydantic_ai_are_cancelled() -> None:
    """If pydantic-ai leaves no tasks any more, `end_orphans()` is not needed."""
    agent: Agent[object, str] = Agent(TestModel())
    for turns in range(20):
        run = asyncio.create_task(agent.run("Hello?"))
        for _ in range(turns):
            await asyncio.sleep(0)
        run.cancel()
        await asyncio.wait({run})

    assert await end_orphans() > 0
    assert await end_orphans() == 0


def test_each_error_of_the_event_loop_is_collected_once() -> None:
    noise = Noise()
    error = logging.LogRecord("asyncio", logging.ERROR, "", 0, "Task exception was never retrieved", None, None)
    noise.emit(error)
    noise.emit(logging.LogRecord("asyncio", logging.ERROR, "", 0, "socket.accept() out of system resource", None, None))

    assert noise.take() == ["Task exception was never retrieved None"]
    assert noise.take() == []


# The plan.


def test_same_seed_gives_the_same_rounds() -> None:
    first, again, other = ([planned(seed, number, [*FAULTS], 10) for number in range(20)] for seed in (3, 3, 4))

    assert first == again != other


def test_rounds_have_each_fault_alone_some_together_and_none() -> None:
    rounds = [planned(0, number, [*FAULTS], 10) for number in range(60)]

    assert {one.faults[0] for one in rounds if len(one.faults) == 1} == {*FAULTS}
    assert {0, 1, 5} <= {len(one.faults) for one in rounds}
    assert any(one.ends_processes for one in rounds)
    assert {planned(0, number, ["cut"], 10).faults for number in range(10)} == {("cut",), ()}


def test_short_soak_has_several_rounds() -> None:
    assert (round_seconds(0.3), round_seconds(30)) == (pytest.approx(6), 15)


# Memory, and the command line.


def test_growing_memory_or_a_large_process_is_a_problem() -> None:
    memory = Memory(rests=[100.0, 300.0, 250.0], most_cli=900.0)

    assert memory.problems(most_growth=200, most_cli=1_000) == []
    assert len(memory.problems(most_growth=100, most_cli=800)) == 2


def test_command_line_names_faults_in_the_order_of_the_table() -> None:
    settings = settings_of(parser().parse_args(["--minutes", "0.5", "--seed", "3", "--only", "kill", "429"]))

    assert settings == Settings(0.5, 3, 8, 12, ("429", "kill"))
    assert settings_of(parser().parse_args([])).faults == tuple(FAULTS)


@pytest.mark.parametrize("words", [["--minutes", "0"], ["--at-once", "-1"], ["--only", "rain"]])
def test_command_line_rejects_invalid_values(words: list[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(words)


def test_list_names_all_faults_and_cases() -> None:
    assert {*FAULTS, *KINDS} <= {line.split()[0] for line in listing().splitlines() if line}
