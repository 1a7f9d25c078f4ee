"""A line for each request in the log, which cc-convert reads."""

import json
import os
import stat
import subprocess
import sys
from io import FileIO
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError

from cc_convert.cli import main
from cc_convert.logs import read_logs
from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider, RequestLog, request_log


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def logged(provider: ClaudeCodeProvider, log: RequestLog | str | Path) -> ClaudeCodeModel:
    """Return a model whose requests are logged, over a shared provider's processes."""
    return ClaudeCodeModel(provider=ClaudeCodeProvider.over(provider.transport, log=log, max_retries=0))


async def test_each_request_has_a_line_with_agent_model_tokens_and_cost(
    provider: ClaudeCodeProvider, tmp_path: Path
) -> None:
    """MODEL-110: with a tool, in runs and in streams; the sums are those of the framework."""
    path = tmp_path / "runs.jsonl"
    agent = Agent(logged(provider, str(path)), name="weather")

    @agent.tool_plain
    def temperature(city: str) -> str:
        return "21 degrees"

    result = await agent.run("Secret question: how warm is it?")
    async with agent.run_stream("And now, secretly?") as stream:
        await stream.get_output()

    records = lines(path)
    usages = (result.usage, stream.usage)
    assert len(records) == sum(usage.requests for usage in usages) > 2
    assert {record["attributionAgent"] for record in records} == {"weather"}
    assert all(record["durationMs"] > 0 and record["processStarted"] in (True, False) for record in records)
    logs = read_logs(path)
    assert not logs.problems
    assert sum(row.output for row in logs.rows) == sum(usage.output_tokens for usage in usages)
    assert sum(row.tokens - row.output for row in logs.rows) == sum(usage.input_tokens for usage in usages)
    assert all(row.logged_cost and row.kind == "request" and row.project == os.getcwd() for row in logs.rows)
    assert [row.tools for row in logs.rows].count(("temperature",)) > 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    content = path.read_text("utf-8")
    assert "ecret" not in content and "21 degrees" not in content


async def test_a_report_by_agent_is_what_each_agent_costs(
    provider: ClaudeCodeProvider, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """MODEL-110, LOG-40: two agents with one file; by day and model, too."""
    path = tmp_path / "runs.jsonl"
    model = logged(provider, path)
    for name, runs in (("writer", 2), ("critic", 1)):
        for _ in range(runs):
            await Agent(model, name=name).run("Hello.")

    sums: dict[str, dict[str, int]] = {}
    for by in ("agent", "day", "model", "session"):
        assert main(["report", by, str(path), "--no-cache", "--format", "json"]) == 0
        sums[by] = {line["key"]: line["requests"] for line in json.loads(capsys.readouterr().out)["lines"]}
    assert sums["agent"] == {"writer": 2, "critic": 1}
    assert [*sums["day"].values()] == [*sums["model"].values()] == [3]
    assert len(sums["session"]) == 3


async def test_prompts_are_logged_only_if_asked_for(
    provider: ClaudeCodeProvider, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """MODEL-111: then cc-convert finds them, and shows transcripts."""
    log = RequestLog(tmp_path / "runs.jsonl", prompts=True)
    agent = Agent(logged(provider, log), name="weather")

    @agent.tool_plain
    def temperature(city: str) -> str:
        return "21 degrees"

    await agent.run("How warm is the teapot?")

    assert main(["convert", str(log.path), "--no-cache", "--format", "md"]) == 0
    transcript = capsys.readouterr().out
    assert all(part in transcript for part in ("How warm is the teapot?", "Tool call · temperature", "21 degrees"))
    assert main(["search", "teapot", str(log.path), "--no-cache", "--role", "prompt"]) == 0


async def test_a_failed_request_is_an_error_in_the_log(tmp_path: Path) -> None:
    """MODEL-110"""
    path = tmp_path / "runs.jsonl"
    with LoopbackServer() as api:
        async with ClaudeCodeProvider(env=api.env(), pool=1, max_retries=0, log=path) as provider:
            api.fail_next(status=400, times=1)
            with pytest.raises(ModelHTTPError):
                await Agent(ClaudeCodeModel(provider=provider)).run("Hello.")
            await Agent(ClaudeCodeModel(provider=provider)).run("Hello.")

    assert [row.kind for row in read_logs(path).rows] == ["error", "request"]


@pytest.mark.worlds
async def test_a_stream_that_is_left_early_is_counted_once(tmp_path: Path) -> None:
    """MODEL-110: a second line may complete the first one."""
    path = tmp_path / "runs.jsonl"
    with LoopbackServer(event_delay=0.02) as slow:
        async with ClaudeCodeProvider(env=slow.env(), max_retries=0, log=path) as provider:
            agent = Agent(ClaudeCodeModel(provider=provider))
            async with agent.run_stream("one two three four five six seven eight nine ten") as result:
                async for _ in result.stream_text(debounce_by=None):
                    break

    [row] = read_logs(path).rows
    assert (row.kind, row.input > 0) == ("request", True)


WRITERS = """
import os, sys
from cc_model import RequestLog
begin, entry = os.pipe()
for number in range(4):
    if not os.fork():
        os.close(entry)
        log = RequestLog(sys.argv[1])
        os.read(begin, 1)
        for count in range(200):
            log.write({"writer": number, "count": count, "text": "x" * (count * 7 % 400)})
        os._exit(0)
os.close(entry)
sys.exit(any(os.wait()[1] for _ in range(4)))
"""


@pytest.mark.worlds
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the processes are forks")
def test_processes_share_a_file_without_losing_a_line(tmp_path: Path) -> None:
    """MODEL-112: they begin at the same time."""
    path = tmp_path / "runs.jsonl"
    subprocess.run([sys.executable, "-c", WRITERS, path], timeout=60, check=True)

    records = [(record["writer"], record["count"]) for record in lines(path)]
    assert sorted(records) == [(number, count) for number in range(4) for count in range(200)]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_was_renamed_is_begun_anew(tmp_path: Path) -> None:
    """MODEL-112: rotating it is the system's work."""
    log = RequestLog(tmp_path / "runs.jsonl")
    for number in range(2):
        log.write({"number": number})
        log.path.rename(tmp_path / f"runs-{number}.jsonl")
    assert [lines(path) for path in sorted(tmp_path.iterdir())] == [[{"number": 0}], [{"number": 1}]]


class CutFile(FileIO):
    """A file on a disk that has room for five bytes."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "ab")

    def write(self, line: Any, /) -> int:
        return super().write(line[:5])


def test_the_log_is_a_private_regular_file_and_a_cut_line_spoils_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MODEL-112: a named pipe and a link are refused at once, and an existing file becomes private."""
    log = RequestLog(tmp_path / "runs.jsonl")
    log.path.touch(0o644)
    with monkeypatch.context() as patch:

        def opened(*_: object, **__: object) -> CutFile:
            return CutFile(log.path)

        patch.setattr(request_log, "open", opened, raising=False)
        log.write({"number": 1})
    for number in (2, 3):
        log.write({"number": number})
    assert log.path.read_bytes() == b'{"num\n{"number":2}\n{"number":3}\n'
    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600
    if sys.platform != "win32":
        os.mkfifo(tmp_path / "pipe.jsonl")
        (tmp_path / "link.jsonl").symlink_to(tmp_path / "target")
        for name in ("pipe.jsonl", "link.jsonl"):
            RequestLog(tmp_path / name).write({"number": 3})
        assert not (tmp_path / "target").exists()


async def test_a_text_that_is_hard_to_write_fails_no_request(provider: ClaudeCodeProvider, tmp_path: Path) -> None:
    """MODEL-112: half of a character, and a value that JSON does not have."""
    log = RequestLog(tmp_path / "runs.jsonl", prompts=True)
    agent = Agent(logged(provider, log))

    @agent.tool_plain
    def temperature(city: str) -> dict[str, object]:
        return {"degrees": float("nan"), "place": "\u65e5"}

    await agent.run("Hello \u65e5.")
    log.write({"text": "\ud83d", "value": float("inf"), "other": object()})

    assert len(log.path.read_text("utf-8").splitlines()) == 5
    assert "\u65e5" in log.path.read_text("utf-8")


def test_a_log_that_cannot_be_written_fails_no_request(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """MODEL-112: a warning, and not one for each request."""
    folder = tmp_path / "logs"
    folder.mkdir()
    log = RequestLog(folder / "runs.jsonl")
    folder.rmdir()
    log.write({})
    log.write({})
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    folder.mkdir()
    log.write({"number": 1})
    assert lines(log.path) == [{"number": 1}]


def test_a_wrong_place_for_the_log_is_an_error_at_once(tmp_path: Path) -> None:
    """MODEL-112"""
    for place in (tmp_path / "missing" / "runs.jsonl", tmp_path):
        with pytest.raises(ValueError, match="create the folder first"):
            ClaudeCodeProvider(log=place)
