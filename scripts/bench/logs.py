"""Measure `cc-convert report` on logs, in comparison with ccusage on the same files.

    python scripts/bench/logs.py [--mb 525] [--rounds 5] [--folder DIR] [--ccusage PATH]

Creates three corpora of transcripts in the CLI's format: `thin` with short lines (tool results of one sentence),
`realistic` with lines of 8 KB on average, some of 5 MB, and `small`, 10,000 files with one answer each. Commands
alternate, and medians count. Times are wall-clock and processor times; on a busy computer the latter are more reliable.
Memory is the peak of a command and its helper processes together. Prints one JSON object, with the ratios to the peer:
speed by clock, by processor and of a repeated report, and memory. Without `--ccusage` the peer
is the command `ccusage`, if installed; its binary comes with its npm package. Measures the extra `fast` if installed.

Exits with 1 if a bound is missed: 1.2 times the peer's speed by clock and by processor, half of it for many small
files, no more memory, a repeated report under 0.3 s.
"""

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil

MODELS = ("claude-sonnet-5", "claude-opus-5", "claude-haiku-4-5-20251001")
SENTENCE = "The quick brown fox jumps over the lazy dog while we refactor the module and check the tests. "
FILES = {"thin": 800, "realistic": 120, "small": 10_000}
LEAST_SPEEDUP = {"thin": 1.2, "realistic": 1.2, "small": 0.5}
MOST_CACHED_SECONDS = 0.3
# No command here takes a minute; a hanging one must not block the benchmark.
PATIENCE = 300.0
SAMPLE = 0.005


class Corpus:
    """Sessions with answers of several blocks, tool results, and the CLI's total at the end. Deterministic."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder = kind, folder
        self._random = random.Random(1)

    def make(self, megabytes: float) -> int:
        """Write the files, each with at least one answer; return their size in bytes."""
        count = FILES[self.kind]
        return sum(self._session(number, max(1, megabytes * 1e6 / count)) for number in range(count))

    def _session(self, number: int, size: float) -> int:
        session, project = self._uuid(), f"/home/user/project{number % 12}"
        folder = self.folder / "projects" / project.replace("/", "-")
        folder.mkdir(parents=True, exist_ok=True)
        written = 0
        with (folder / f"{session}.jsonl").open("w", encoding="utf-8") as file:
            for line in self._lines(session, project, size):
                written += file.write(line)
        return written

    def _lines(self, session: str, project: str, size: float) -> Iterator[str]:
        common = {
            "userType": "external",
            "entrypoint": "cli",
            "cwd": project,
            "sessionId": session,
            "version": "2.1.329",
        }
        began = when = datetime(2026, 9, 1, tzinfo=UTC) + timedelta(minutes=self._random.randrange(60 * 24 * 75))
        totals: dict[str, list[int]] = {}
        written = 0
        while written < size:
            for record in self._notes(session):
                line = json.dumps(record, separators=(",", ":"))
                written += len(line) + 1
                yield f"{line}\n"
            when += timedelta(seconds=self._random.randrange(5, 60))
            stamp = when.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            results = () if self.kind == "small" else self._results()
            for record in (*self._answer(totals), *results):
                line = json.dumps({**record, "uuid": self._uuid(), "timestamp": stamp, **common}, separators=(",", ":"))
                written += len(line) + 1
                yield f"{line}\n"
        milliseconds = {"startTime": int(began.timestamp() * 1000), "totalDuration": (when - began).seconds * 1000}
        usage = {model: self._total(numbers) for model, numbers in totals.items()}
        total = {"type": "cost-state", "sessionId": session, **milliseconds, "modelUsage": usage}
        yield json.dumps(total, separators=(",", ":")) + "\n"

    def _notes(self, session: str) -> Iterator[dict[str, Any]]:
        """Return the CLI's internal records, which it writes with each request."""
        system = [{"path": ["system", number], "value": {"type": "ephemeral"}} for number in range(3)]
        yield {
            "type": "api-request", "sessionId": session, "id": self._uuid(), "version": "2.1.329", "querySource": "sdk",
            "params": {"model": MODELS[0], "max_tokens": 64000, "thinking": {"type": "adaptive"}}, "keep": 2,
            "tail": [self._name() for _ in range(3)], "cacheControl": system, "requestDigest": self._name(),
        }  # fmt: skip
        yield {"type": "tools-used", "tools": ["Bash"], "sessionId": session}
        yield {"type": "last-prompt", "lastPrompt": SENTENCE, "leafUuid": self._uuid(), "sessionId": session}

    def _answer(self, totals: dict[str, list[int]]) -> Iterator[dict[str, Any]]:
        draw = self._random
        model, written, identity, request = draw.choice(MODELS), draw.randrange(9000), self._name(), self._name()
        numbers = [draw.randrange(1, 500), draw.randrange(1, 3000), draw.randrange(150_000), written, written // 3]
        totals[model] = [sum(pair) for pair in zip(totals.get(model, [0] * 5), numbers, strict=True)]
        usage: dict[str, Any] = {
            "input_tokens": numbers[0], "cache_creation_input_tokens": written, "cache_read_input_tokens": numbers[2],
            "output_tokens": numbers[1], "output_tokens_details": {"thinking_tokens": 0},
            "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0}, "service_tier": "standard",
            "cache_creation": {
                "ephemeral_1h_input_tokens": numbers[4], "ephemeral_5m_input_tokens": written - numbers[4],
            },
            "inference_geo": "global", "iterations": [], "speed": "standard",
        }  # fmt: skip
        blocks = {"thin": draw.randrange(2, 6), "realistic": 3, "small": 1}[self.kind]
        for number in range(blocks):
            message: dict[str, Any] = {
                "id": f"msg_{identity}", "type": "message", "role": "assistant", "model": model,
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
            return {
                "type": "text",
                "text": SENTENCE[: draw.randrange(20, 90)] if short else SENTENCE * draw.randrange(2, 30),
            }
        given = {"command": "ls -la"} if short else {"path": self._name(), "content": SENTENCE * draw.randrange(5, 80)}
        return {"type": "tool_use", "id": f"toolu_{self._name()}", "name": "Bash" if short else "Write", "input": given}

    def _results(self) -> Iterator[dict[str, Any]]:
        draw, short = self._random, self.kind == "thin"
        for _ in range(draw.randrange(4, 9) if short else 2):
            times = draw.randrange(1, 4) if short else draw.randrange(40, 400)
            if not short and draw.random() < 0.005:
                times = draw.randrange(10_000, 55_000)
            result = {"tool_use_id": f"toolu_{self._name()}", "type": "tool_result", "content": SENTENCE * times}
            yield {
                "parentUuid": self._uuid(), "isSidechain": False, "promptId": self._uuid(), "type": "user",
                "message": {"role": "user", "content": [result]}, "toolUseResult": {"type": "text"},
            }  # fmt: skip

    @staticmethod
    def _total(numbers: list[int]) -> dict[str, Any]:
        return {
            "inputTokens": numbers[0], "outputTokens": numbers[1], "cacheReadInputTokens": numbers[2],
            "cacheCreationInputTokens": numbers[3], "cacheCreationEphemeral1hInputTokens": numbers[4], "costUSD": 0.0,
        }  # fmt: skip

    def _uuid(self) -> str:
        text = f"{self._random.getrandbits(128):032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def _name(self) -> str:
        return f"{self._random.getrandbits(120):024x}"[:24]


def measured(command: list[str], environment: dict[str, str]) -> dict[str, float]:
    """Run a command; return seconds, processor seconds, and the peak megabytes of it and its helper processes."""
    started, before = time.perf_counter(), os.times()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    most, ended = [0.0], threading.Event()
    watcher = threading.Thread(target=_watch, args=(process.pid, most, ended))
    watcher.start()
    try:
        code = process.wait(PATIENCE)
    finally:
        ended.set()
        watcher.join()
        process.kill()
    seconds, after = time.perf_counter() - started, os.times()
    if code:
        raise SystemExit(f"exit code {code}: {' '.join(command)}")
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return {"seconds": seconds, "processor": used, "megabytes": most[0]}


def _watch(pid: int, most: list[float], ended: threading.Event) -> None:
    if sys.platform != "linux":
        raise NotImplementedError("only Linux divides shared memory among processes")
    while not ended.wait(SAMPLE):
        with suppress(psutil.Error):  # the command or one of its helper processes has just exited
            root = psutil.Process(pid)
            # Memory that processes share counts only in part for each of them.
            family = [root, *root.children(recursive=True)]
            most[0] = max(most[0], sum(one.memory_full_info().pss for one in family) / 1e6)


def compare(kind: str, folder: Path, rounds: int, megabytes: float, peer: str | None) -> dict[str, Any]:
    """Create one corpus and run the commands on it in alternation."""
    size = Corpus(kind, folder).make(0 if kind == "small" else megabytes)
    environment = {**os.environ, "CLAUDE_CONFIG_DIR": str(folder), "CC_CONVERT_CACHE": str(folder / "cache")}
    # An installed package has compiled modules; without them, imports take twice as long.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    report = [sys.executable, "-m", "cc_convert", "report", "day", "--format", "json"]
    commands = {
        "cc-convert": [*report, "--no-cache"],
        "cc-convert, one process": [*report, "--no-cache", "--jobs", "1"],
    }
    if peer:
        commands["ccusage"] = [peer, "daily", "-O", "-j"]
    commands["cc-convert, repeated"] = report
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            found = measured(command, environment)
            if number:  # The first round fills the page cache and our cache
                runs[name].append(found)
    result: dict[str, Any] = {"megabytes": size / 1e6}
    for name, found in runs.items():
        result[name] = {key: round(statistics.median(run[key] for run in found), 3) for key in found[0]}
        result[name]["megabytes per second"] = round(size / 1e6 / result[name]["seconds"])
    return result


def missed(results: dict[str, dict[str, Any]]) -> list[str]:
    """Return a message for each missed bound."""
    found: list[str] = []
    for kind, result in results.items():
        if result["cc-convert, repeated"]["seconds"] > MOST_CACHED_SECONDS:
            found.append(f"{kind}: a repeated report took longer than {MOST_CACHED_SECONDS} s")
        if "ccusage" in result:
            result["times ccusage"] = round(result["ccusage"]["seconds"] / result["cc-convert"]["seconds"], 2)
            result["times ccusage, processor"] = round(
                result["ccusage"]["processor"] / result["cc-convert"]["processor"], 2
            )
            repeated = result["ccusage"]["seconds"] / result["cc-convert, repeated"]["seconds"]
            result["times ccusage, repeated"] = round(repeated, 2)
            memory = result["cc-convert"]["megabytes"] / result["ccusage"]["megabytes"]
            result["memory in ccusage's"] = round(memory, 2)
            ratios = {name: result[name] for name in ("times ccusage", "times ccusage, processor")}
            found += [f"{kind}: {ratio} {name}" for name, ratio in ratios.items() if ratio < LEAST_SPEEDUP[kind]]
            if result["cc-convert"]["megabytes"] > result["ccusage"]["megabytes"]:
                found.append(f"{kind}: more memory than ccusage")
    return found


def main() -> int:
    """Measure, print, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=float, default=525.0, help="size of each corpus (default: 525)")
    parser.add_argument("--rounds", type=int, default=5, help="counted runs of each command (default: 5)")
    parser.add_argument("--folder", type=Path, help="folder for the corpora (default: a temporary folder)")
    parser.add_argument("--ccusage", default=shutil.which("ccusage"), help="path of the peer's binary")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        results = {
            kind: compare(kind, Path(folder) / kind, options.rounds, options.mb, options.ccusage) for kind in FILES
        }
    problems = missed(results)
    print(json.dumps({**results, "fast": find_spec("stringzilla") is not None, "missed": problems}, indent=1))
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
