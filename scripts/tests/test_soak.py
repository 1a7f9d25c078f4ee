"""Parts of scripts/soak: prompts and answers, requests hit by faults, leaks, plan, command, causes, report."""

import asyncio
import json
import logging
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from soak.__main__ import main, parsed
from soak.api import FAILED, MARK, MixedUpError, marks_of, respond, scripted_api
from soak.faults import CONNECTION, FAULTS, NO_DESCRIPTOR, TOOL, FaultRecord, Round, planned, room
from soak.report import Settings, Totals, progress, summary
from soak.rest import Noise, end_orphans, left_over, stable
from soak.secrets import Watch
from soak.soak import KINDS
from soak.verdict import OTHER, RIGHT, Ended, Verdict, judge


def body(*contents: Any, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content} for content in contents], **more}


def result(text: str, *, is_error: bool = False) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "content": [{"type": "text", "text": text}], "is_error": is_error}]


async def test_answer_has_the_mark_of_the_prompt_in_the_requested_format() -> None:
    text = await respond(body("Find <17>."))
    called = await respond(body("Find <17>.", tools=[{"name": "final_result"}]))
    native = await respond(body("Find <17>.", output_config={"format": {}}))

    assert isinstance(text, str)
    assert MARK.findall(text) == ["<17>"]
    assert called == [{"type": "tool_use", "name": "final_result", "input": {"mark": "<17>"}}]
    assert json.loads(str(native)) == {"mark": "<17>"}


@pytest.mark.parametrize("name", ["look", "mcp__pydantic_tools__look"])
async def test_an_answer_has_the_result_of_the_tool_called_with_its_mark(name: str) -> None:
    tools = [{"name": "other"}, {"name": name}]

    assert await respond(body("Find <17>.", tools=tools)) == [
        {"type": "tool_use", "name": name, "input": {"mark": "<17>"}}
    ]
    assert "saw <17>" in str(await respond(body("Find <17>.", result("saw <17>"), tools=tools)))
    assert FAILED in str(await respond(body("Find <17>.", result("no", is_error=True), tools=tools)))


async def test_marks_come_from_texts_and_blocks_and_two_are_rejected() -> None:
    assert marks_of(body("a <1>", [{"type": "text", "text": "b <2>"}])) == ["<1>", "<2>"]
    with pytest.raises(MixedUpError):
        await respond(body("Find <17>.", result("saw <18>")))


async def test_each_fault_affects_one_of_the_next_requests_until_faults_are_dropped(tmp_path: Path) -> None:
    async with scripted_api(str(tmp_path)) as api:
        url = api.env["ANTHROPIC_BASE_URL"] + "/v1/messages"

        async def statuses(*marks: str) -> list[int]:
            async with httpx2.AsyncClient() as http:
                requests = [{**body(f"Find {mark}."), "model": "m", "max_tokens": 9} for mark in marks]
                return [(await http.post(url, json=request)).status_code for request in requests]

        await api.fail(5, status=529)
        # The first request adds the fault, which affects the second.
        assert await statuses("<1>", "<2>", "<3>") == [200, 529, 200]
        await api.update()
        assert (api.hits, api.requests, api.errors) == ({"<2>": {5}}, 3, [])

        for fault in (6, 7):
            await api.fail(fault, status=500)
        assert await statuses("<4>", "<5>") == [200, 500]
        await api.update()
        await api.order("stop")
        with pytest.raises(httpx2.ConnectError):
            await statuses("<6>")
        await api.order("start")
        assert await statuses("<7>", "<8>") == [200, 200]

        for fault in range(3):
            await api.fail(fault, status=500)
        assert await statuses("<9>") == [200]
        await api.fail(3, status=500)
        await api.order("drop_faults")
        await api.fail(8, status=500)
        assert await statuses("<10>", "<11>") == [200, 500]
        await api.update()

    assert (api.hits, api.requests) == ({"<2>": {5}, "<5>": {6}, "<11>": {8}}, 10)
    assert os.listdir(tmp_path) == []


def test_temporary_files_go_to_the_folder_which_is_removed_afterwards() -> None:
    before, variable = tempfile.gettempdir(), os.environ.get("TMPDIR")
    with room() as made:
        Path(tempfile.mkdtemp(), "file").touch()
        assert len([*made.path.iterdir()]) == 1

    assert (tempfile.gettempdir(), os.environ.get("TMPDIR")) == (before, variable)
    assert not made.path.exists()


@pytest.mark.slow
async def test_each_leak_is_reported(tmp_path: Path) -> None:
    before = await stable(tmp_path)  # other tests in this process may have left closing resources
    assert await left_over(before, tmp_path, seconds=5) == []
    descriptor = os.open(tmp_path / "left.txt", os.O_CREAT | os.O_RDONLY)
    waiting = asyncio.ensure_future(asyncio.Event().wait())
    process = await asyncio.create_subprocess_exec("sleep", "60")
    try:
        await asyncio.sleep(0)
        leaks = await left_over(before, tmp_path, seconds=0)
    finally:
        os.close(descriptor)
        waiting.cancel()
        process.kill()
        await process.wait()
        del process  # asyncio's own object has a future without a waiter

    assert [line for line in leaks if line.startswith("file ")] == ["file left.txt"]
    assert any(line.startswith("process ") and "sleep 60" in line for line in leaks)
    assert any("descriptors" in line and "left.txt" in line for line in leaks)
    assert any("Event.wait" in line for line in leaks)
    assert await left_over(before, tmp_path, seconds=5) == []


async def test_tasks_left_by_pydantic_ai_are_cancelled() -> None:
    """If it leaves none on Python 3.11 any more, `end_orphans()` is not needed."""
    agent: Agent[object, str] = Agent(TestModel())
    for turns in range(20):
        run = asyncio.create_task(agent.run("Hello?"))
        for _ in range(turns):
            await asyncio.sleep(0)
        run.cancel()
        await asyncio.wait({run})

    assert (await end_orphans() > 0) == (sys.version_info < (3, 12))
    assert await end_orphans() == 0


def test_errors_of_the_event_loop_are_collected_except_for_used_up_descriptors() -> None:
    noise = Noise()
    for message in ("Task exception was never retrieved", "socket.accept() out of system resource"):
        noise.emit(logging.LogRecord("asyncio", logging.ERROR, "", 0, message, None, None))

    assert [noise.take(), noise.take()] == [["Task exception was never retrieved None"], []]


def test_rounds_have_each_fault_alone_some_together_and_none() -> None:
    rounds = [planned(0, number, [*FAULTS], 10) for number in range(60)]
    assert rounds == [planned(0, number, [*FAULTS], 10) for number in range(60)]

    assert {plan.faults[0] for plan in rounds if len(plan.faults) == 1} == {*FAULTS}
    assert {0, 1, 5} <= {len(plan.faults) for plan in rounds}
    assert any(plan.ends_processes for plan in rounds)
    assert {planned(0, number, ["cut"], 10).faults for number in range(10)} == {("cut",), ()}


def test_growing_memory_and_a_large_process_are_violations() -> None:
    totals = Totals(resting_mb=[100.0, 300.0, 190.0], most_cli_mb=900.0)
    totals.judge_memory(0)
    assert totals.broken == []

    totals.resting_mb.append(250.0)
    totals.most_cli_mb = 1_100.0
    totals.judge_memory(0)
    assert len(totals.broken) == 2


def test_command_line_names_faults_in_the_order_of_the_table() -> None:
    settings = parsed(["--minutes", "0.5", "--seed", "3", "--only", "kill", "429"])

    assert settings == Settings(0.5, 3, 8, 12, ("429", "kill"))
    assert parsed([]).faults == tuple(FAULTS)
    for words in (["--minutes", "0"], ["--at-once", "-1"], ["--only", "rain"]):
        with pytest.raises(SystemExit):
            parsed(words)


def test_the_command_lists_all_faults_and_cases(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert {*FAULTS, *KINDS} <= {line.split()[0] for line in capsys.readouterr().out.splitlines() if line}


SETTINGS = Settings(seed=7, pool=6)


def ended(error: str, mark: str = "<1>", begun: float = 10.0, end: float = 12.0) -> Ended:
    return Ended("text", mark, begun, end, error, "words")


@pytest.mark.parametrize("error", ["429", CONNECTION, TOOL, NO_DESCRIPTOR, OTHER])
def test_only_a_right_answer_needs_no_cause(error: str) -> None:
    [broken] = judge([ended(RIGHT), ended(error)], []).broken
    assert error in broken


def test_fault_of_the_api_explains_errors_of_its_own_case_only() -> None:
    records, hits = [FaultRecord("429", 11, 11)], {"<1>": {0}}

    assert not judge([ended("429", "<1>")], records, hits).broken
    for end in (ended("429", "<2>"), ended("529", "<1>"), ended(CONNECTION, "<1>")):
        assert judge([end], records, hits).broken
    # An error event may be reported as a connection error.
    assert not judge([ended("529"), ended(CONNECTION)], [FaultRecord("event", 11, 11)], hits).broken


def test_each_kill_explains_one_error_in_a_running_case_that_needs_it() -> None:
    kill, later = FaultRecord("kill", 11, 11), FaultRecord("kill", 14, 14)
    two = [ended(CONNECTION, "<1>", 10, 20), ended(CONNECTION, "<2>", 10.5, 12)]

    assert judge([ended(CONNECTION)], [kill]).causes == {"kill": 1}
    assert len(judge(two, [kill]).broken) == 1
    assert judge(two, [kill, later]).causes == {"kill": 2}
    # Before a case starts, and after it ends.
    assert judge([ended(CONNECTION)], [FaultRecord("kill", 5, 5), FaultRecord("kill", 12.5, 12.5)]).broken


def test_a_lasting_fault_explains_the_errors_of_its_time() -> None:
    on = FaultRecord("api", 9, math.inf)

    assert not judge([ended(CONNECTION, "<1>"), ended(CONNECTION, "<2>")], [on]).broken
    assert judge([ended("429")], [on]).broken
    assert judge([ended(CONNECTION, begun=1, end=8)], [on]).broken


def test_wrong_answer_is_never_explained() -> None:
    records = [FaultRecord(fault, 0, math.inf) for fault in FAULTS]
    hits = {"<1>": set(range(len(records)))}

    assert judge([ended(OTHER)], records, hits).broken


def totals_of_two() -> Totals:
    totals = Totals(seconds=2.0, rounds=1)
    totals.count([ended(RIGHT), ended("429", "<2>")], Verdict())
    totals.done.update({"429": 3})
    totals.caused.update({"429": 1})
    return totals


def test_summary_has_the_figures_and_a_command_to_reproduce_violations() -> None:
    totals = totals_of_two()
    printed = summary(SETTINGS, totals, "tmpfs")

    assert "2 runs (1.0/s) in 2 cases and 1 rounds" in printed
    assert re.search(r"\n429 +3 +1\n", printed)
    assert re.search(r"\ntext +2 +2 +1 +2\.0 s\n", printed)
    assert totals.outcomes == {RIGHT: 1, "429": 1}
    assert "violated invariants: 0" in printed
    assert "To reproduce" not in printed
    assert "round 3 (429)" in progress(totals, Round(3, ("429",)))

    totals.breaks(4, ["one", "two"] * 500)
    assert (totals.broken_count, len(totals.broken) < 100) == (1_000, True)
    printed = summary(SETTINGS, totals, "none")
    assert "uv run scripts/soak --seed 7 --round 4 --minutes 1 " in printed
    assert "  round 4: two" in printed


def test_a_secret_is_found_in_what_others_can_read(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    for name, mode in (("private", 0o600), ("public", 0o640), ("planted-file-1", 0o600)):
        (tmp_path / name).write_text("a planted-key-1", "utf-8")
        (tmp_path / name).chmod(mode)
    code = "import time; time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code, "planted-prompt-2"]) as process:
        watch.look_once()
        process.kill()
    watch.look("the log", "planted-token-1, planted-token-2, planted-token-2")
    assert watch.found == {
        "planted-key in a file that others can read, public": 1,
        "planted-file in the name of a file": 1,
        "planted-prompt in a process title": 1,
        "planted-token in the log": 2,
    }
