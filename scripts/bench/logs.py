"""Measure `cc-convert report` and `search` on logs, the former in comparison with ccusage on the same files (LOG-54).

Reports read four corpora of transcripts in the CLI's format: `thin` with short lines (a sentence as tool result),
`realistic` with 8 KB in an average line and up to 5 MB, and `small` and `many` with 10,000 and 100,000 files and an
answer in each. Each is read by a first report, which fills the cache, without a cache, and by a repeated report. Times
are wall-clock and processor times; on a busy computer the latter are more reliable. Memory is the peak in a command and
all helper processes. The peer is the command `ccusage`, if installed; the binary comes with the npm package. The last
table compares the shortest times. Searches (LOG-86) read a gigabyte: a text that occurs once, a text in every answer,
and a regular expression.
"""

import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil

from .harness import Bound, Effort, Figure, Group, Suite, ratios_of_neighbours

MEGABYTES, SEARCHED_MEGABYTES = 525.0, 1000.0
ROUNDS = 5
MODELS = ("claude-sonnet-5", "claude-opus-5", "claude-haiku-4-5-20251001")
SENTENCE = "The quick brown fox jumps over the lazy dog while we refactor the module and check the tests. "
FILES = {"thin": 800, "realistic": 120, "small": 10_000, "many": 100_000}
SMALL = ("small", "many")
LEAST_SPEEDUP = {"thin": 1.2, "realistic": 1.2, "small": 0.5, "many": 0.5}
FIRST, OURS, REPEATED = "cc-convert, first", "cc-convert, no cache", "cc-convert, repeated"
ONE_PROCESS, PEER = "cc-convert, one process", "ccusage"
SEARCHES = {
    "a text that is rare": ["zebra crossing"],
    "a text in every answer": ["brown fox"],
    "a regular expression": ["-E", r"zebra\s+c\w+ing"],
}
RARE = {"type": "user", "sessionId": "rare", "message": {"role": "user", "content": "A zebra crossing"}}
# No command here takes a minute; a hanging command must not block the benchmark.
_COMMAND_SECONDS = 300.0
# More often, and the watcher itself would take much of a processor from the command.
_SAMPLE_SECONDS = 0.05
_LEAST = "ccusage's least"


class Corpus:
    """Sessions with answers in several blocks, tool results, and the CLI's total at the end. Deterministic."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder = kind, folder
        self._random = random.Random(1)

    def make(self, megabytes: float, count: int) -> None:
        """Write the files, each with an answer or more."""
        for number in range(count):
            session, project = self._uuid(), f"/home/user/project{number % 12}"
            folder = self.folder / "projects" / project.replace("/", "-")
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / f"{session}.jsonl").open("w", encoding="utf-8") as file:
                for record in self._session(session, project, lambda: file.tell() < megabytes * 1e6 / count):
                    file.write(json.dumps(record, separators=(",", ":")) + "\n")

    def _session(self, session: str, project: str, goes_on: Callable[[], bool]) -> Iterator[dict[str, Any]]:
        head = {"userType": "external", "entrypoint": "cli", "cwd": project, "sessionId": session, "version": "2.1.329"}
        began = when = datetime(2026, 9, 1, tzinfo=UTC) + timedelta(minutes=self._random.randrange(60 * 24 * 75))
        totals: dict[str, list[int]] = {}
        while not totals or goes_on():
            yield from self._notes(session)
            when += timedelta(seconds=self._random.randrange(5, 60))
            stamp = when.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            for record in (*self._answer(totals), *(() if self.kind == "small" else self._results())):
                yield {**record, "uuid": self._uuid(), "timestamp": stamp, **head}
        duration = {"startTime": int(began.timestamp() * 1000), "totalDuration": (when - began).seconds * 1000}
        names = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
        keys = (*names, "cacheCreationEphemeral1hInputTokens")
        usage = {model: {**dict(zip(keys, counts, strict=True)), "costUSD": 0} for model, counts in totals.items()}
        yield {"type": "cost-state", "sessionId": session, **duration, "modelUsage": usage}

    def _notes(self, session: str) -> Iterator[dict[str, Any]]:
        """Yield the CLI's internal records, which it writes with each request."""
        system = [{"path": ["system", number], "value": {"type": "ephemeral"}} for number in range(3)]
        yield {
            "type": "api-request", "sessionId": session, "id": self._uuid(), "version": "2.1.329", "querySource": "sdk",
            "params": {"model": MODELS[0], "max_tokens": 64000, "thinking": {"type": "adaptive"}}, "keep": 2,
            "tail": [self._uuid() for _ in range(3)], "cacheControl": system, "requestDigest": self._uuid(),
        }  # fmt: skip
        yield {"type": "tools-used", "tools": ["Bash"], "sessionId": session}
        yield {"type": "last-prompt", "lastPrompt": SENTENCE, "leafUuid": self._uuid(), "sessionId": session}

    def _answer(self, totals: dict[str, list[int]]) -> Iterator[dict[str, Any]]:
        draw = self._random
        model, cached, message_id, request = draw.choice(MODELS), draw.randrange(9000), self._uuid(), self._uuid()
        counts = [draw.randrange(1, 500), draw.randrange(1, 3000), draw.randrange(150_000), cached, cached // 3]
        totals[model] = [sum(pair) for pair in zip(totals.get(model, [0] * 5), counts, strict=True)]
        usage: dict[str, Any] = {
            "input_tokens": counts[0], "cache_creation_input_tokens": cached, "cache_read_input_tokens": counts[2],
            "output_tokens": counts[1], "output_tokens_details": {"thinking_tokens": 0},
            "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0}, "service_tier": "standard",
            "cache_creation": {
                "ephemeral_1h_input_tokens": counts[4], "ephemeral_5m_input_tokens": cached - counts[4],
            },
            "inference_geo": "global", "iterations": [], "speed": "standard",
        }  # fmt: skip
        blocks = {"thin": draw.randrange(2, 6), "realistic": 3, "small": 1}[self.kind]
        for number in range(blocks):
            message: dict[str, Any] = {
                "id": f"msg_{message_id}", "type": "message", "role": "assistant", "model": model,
                "content": [self._block(last=number == blocks - 1)], "stop_reason": "tool_use", "stop_sequence": None,
                "usage": usage,
            }  # fmt: skip
            yield {
                "parentUuid": self._uuid(), "isSidechain": False, "message": message, "apiBlockIndex": number,
                "requestId": f"req_{request}", "type": "assistant",
            }  # fmt: skip

    def _block(self, *, last: bool) -> dict[str, Any]:
        draw, short = self._random, self.kind != "realistic"
        if not last:
            text = SENTENCE[: draw.randrange(20, 90)] if short else SENTENCE * draw.randrange(2, 30)
            return {"type": "text", "text": text}
        edit = {"command": "ls -la"} if short else {"path": self._uuid(), "content": SENTENCE * draw.randrange(5, 80)}
        return {"type": "tool_use", "id": f"toolu_{self._uuid()}", "name": "Bash" if short else "Write", "input": edit}

    def _results(self) -> Iterator[dict[str, Any]]:
        draw, short = self._random, self.kind == "thin"
        for _ in range(draw.randrange(4, 9) if short else 2):
            times = draw.randrange(1, 4) if short else draw.randrange(40, 400)
            if not short and draw.random() < 0.005:
                times = draw.randrange(10_000, 55_000)
            result = {"tool_use_id": f"toolu_{self._uuid()}", "type": "tool_result", "content": SENTENCE * times}
            yield {
                "parentUuid": self._uuid(), "isSidechain": False, "promptId": self._uuid(), "type": "user",
                "message": {"role": "user", "content": [result]}, "toolUseResult": {"type": "text"},
            }  # fmt: skip

    def _uuid(self) -> str:
        return str(UUID(int=self._random.getrandbits(128)))


def measured(command: Sequence[str], env: Mapping[str, str]) -> dict[str, float]:
    """Run a command; return seconds, processor seconds, and the peak megabytes, with helper processes."""
    started, before, most = time.perf_counter(), os.times(), 0.0
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            while (code := process.poll()) is None:
                if time.perf_counter() - started > _COMMAND_SECONDS:
                    raise TimeoutError(f"no end after {_COMMAND_SECONDS:.0f} s: {' '.join(command)}")
                most = max(most, _megabytes(process.pid))
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_SAMPLE_SECONDS)
        finally:
            process.kill()
    seconds, after = time.perf_counter() - started, os.times()
    if code:
        raise RuntimeError(f"exit code {code}: {' '.join(command)}")
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return {"seconds": seconds, "processor": used, "megabytes": most}


def _megabytes(pid: int) -> float:
    if sys.platform != "linux":
        raise NotImplementedError("only Linux divides shared memory among processes")
    with suppress(psutil.Error):  # the command or a helper process has just exited
        root = psutil.Process(pid)
        # Memory that processes share counts only in part for each.
        return sum(process.memory_full_info().pss for process in [root, *root.children(recursive=True)]) / 1e6
    return 0.0


def environment(folder: Path) -> dict[str, str]:
    # An installed package has compiled modules; without them, imports take twice as long.
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**variables, "CLAUDE_CONFIG_DIR": str(folder), "CC_CONVERT_CACHE": str(folder / "cache")}


def compare(kind: str, folder: Path, effort: Effort) -> list[Figure]:
    megabytes = 0 if kind in SMALL else effort.times(int(MEGABYTES), 4)
    Corpus("small" if kind in SMALL else kind, folder).make(megabytes, effort.times(FILES[kind], 10))
    report = [sys.executable, "-m", "cc_convert", "report", "day", "--format", "json"]
    commands = {FIRST: report, REPEATED: report, OURS: [*report, "--no-cache"]}
    commands[ONE_PROCESS] = [*commands[OURS], "--jobs", "1"]
    if peer := shutil.which("ccusage"):
        commands[PEER] = [peer, "daily", "-O", "-j"]
    runs: dict[str, dict[str, list[float]]] = {"seconds": {}, "processor": {}, "megabytes": {}}
    for number in range(effort.times(ROUNDS, 1) + 1):
        for name, command in commands.items():
            if name == FIRST:
                shutil.rmtree(folder / "cache", ignore_errors=True)
            for quantity, value in measured(command, environment(folder)).items():
                if number:  # the first round fills the page cache
                    runs[quantity].setdefault(name, []).append(value)
    figures = [
        *Group(f"Report over {kind} logs", "s").figures(runs["seconds"], bounds={REPEATED: Bound(0.3)}),
        *Group(f"Processor time of a report over {kind} logs", "s").figures(runs["processor"]),
        *Group(f"Memory of a report over {kind} logs", "MB").figures(runs["megabytes"]),
    ]
    for quantity, times in runs.items() if peer else ():
        bound = Bound(1.0 if quantity == "megabytes" else LEAST_SPEEDUP[kind], least=True)
        title = f"ccusage on {kind} logs, {quantity} in multiples of cc-convert's"
        figures.append(Group(title, "times").figure(PEER, ratios_of_neighbours(times[PEER], times[OURS]), bound))
    for quantity in ("seconds", "processor") if peer else ():
        group = Group(f"{_LEAST} {quantity} in multiples of cc-convert's", "times")
        least = {name: min(times) for name, times in runs[quantity].items()}
        figures += [group.figure(f"{kind}: {name}", [least[PEER] / least[name]]) for name in (FIRST, OURS, REPEATED)]
    return figures


def search(folder: Path, effort: Effort) -> list[Figure]:
    """Create a corpus, and search it: once without a cache, then repeatedly."""
    Corpus("realistic", folder).make(effort.times(int(SEARCHED_MEGABYTES), 4), effort.times(FILES["realistic"], 4))
    (folder / "projects" / "rare.jsonl").write_text(json.dumps(RARE) + "\n", encoding="utf-8")
    command, env = [sys.executable, "-m", "cc_convert", "search"], environment(folder)
    first = {name: [measured([*command, *words], env)["seconds"]] for name, words in [*SEARCHES.items()][:1]}
    repeated = {
        name: [measured([*command, *words], env)["seconds"] for _ in range(effort.times(ROUNDS))]
        for name, words in SEARCHES.items()
    }
    bounds = {name: Bound(0.8) for name in SEARCHES if "text" in name}
    return [
        *Group("First search, which reads the logs", "s").figures(first),
        *Group("Repeated search", "s").figures(repeated, bounds=bounds),
    ]


async def measure_reports(effort: Effort) -> list[Figure]:
    figures: list[Figure] = []
    for kind in FILES:
        with tempfile.TemporaryDirectory() as folder:
            figures += await asyncio.to_thread(compare, kind, Path(folder), effort)
    return sorted(figures, key=lambda figure: (is_last := figure.group.startswith(_LEAST), is_last and figure.group))


async def measure_search(effort: Effort) -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        return await asyncio.to_thread(search, Path(folder), effort)


SUITES = (Suite("logs", "Reports on logs", measure_reports), Suite("search", "Searches in logs", measure_search))
