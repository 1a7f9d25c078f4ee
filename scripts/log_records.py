"""Record transcripts of the CLI for the tests of cc-convert, each with the usage that the API served.

    uv run scripts/log_records.py --faketime LIBRARY [NAME ...]

The clock of the CLI is set by libfaketime, of which LIBRARY is the file. Only the fields that a report reads are kept.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from cc_loopback import LoopbackServer
from log_corpora import (
    AGENT,
    COMPACT,
    HELLO,
    READ,
    SCENARIOS,
    CliRuns,
    Scenario,
    Step,
    fork,
    new,
    process,
    resume,
    scenario,
    sdk_fork,
    served,
)  # fmt: skip
from workspace import ROOT

RECORDS = ROOT / "packages" / "cc-convert" / "tests" / "transcripts"
FIELDS = {
    "type", "subtype", "operation", "sessionId", "requestSessionId", "agentId", "attributionAgent", "timestamp", "uuid",
    "requestId", "message", "isSidechain", "toolUseResult", "cwd", "version", "entrypoint", "totalCostUSD",
    "totalDuration", "startTime", "modelUsage", "requestedModel", "key", "result", "label",
    "forkedFrom",
}  # fmt: skip
"""The fields of a record that are kept."""
NOTES = {"attachment", "api-request", "api-request-shape", "api-request-blob", "last-prompt", "atis-latch", "mode"}
"""Records that no report reads."""


def clock_of(cli: CliRuns) -> Path:
    """Return the file with the seconds by which the CLI's clock differs, which libfaketime reads at each call."""
    return cli.transcripts.parent / "clock"


@contextmanager
def faked(library: Path, file: Path) -> Generator[None]:
    """Give a clock to the processes started in this block."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("+0\n", encoding="utf-8")
    names = {
        "LD_PRELOAD": str(library), "FAKETIME_TIMESTAMP_FILE": str(file), "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }  # fmt: skip
    with patch.dict(os.environ, names):
        yield


# --- steps and scenarios


def clock(seconds: int) -> Step:
    """Set the clock to so many seconds after the true time."""
    return lambda cli, _ids: clock_of(cli).write_text(f"{seconds:+d}\n", encoding="utf-8")


def pause(_cli: CliRuns, _ids: list[str]) -> None:
    """Let a process be ready."""
    time.sleep(1)


def has(name: str, value: object) -> Step:
    """Set an attribute of the runs."""
    return lambda cli, _ids: setattr(cli, name, value)


def with_clock(seconds: int) -> dict[str, Scenario]:
    """Return scenarios in which the clock is set once."""
    at = clock(seconds)
    return {
        "before_a_resume": scenario(new(READ), at, resume(0), resume(0, AGENT)),
        "after_a_start": scenario(process(pause, at, READ, HELLO), resume(0)),
        "between_turns": scenario(process(READ, at, AGENT, HELLO)),
        "in_a_resumed_session": scenario(new(READ), process(HELLO, at, AGENT, of=0), resume(0)),
        "before_a_fork": scenario(new(READ), at, fork(0), resume(0), resume(1)),
        "after_a_kill": scenario(new(READ), process(HELLO, of=0, is_killed=True), at, resume(0), fork(0)),
        "before_a_compaction": scenario(process(READ, at, COMPACT, HELLO), resume(0)),
        "in_a_process_that_compacts": scenario(new(READ), process(pause, at, HELLO, COMPACT, READ, of=0)),
    }


STEPS: dict[str, tuple[int, ...]] = {
    "before_a_resume": (-3600, -2, 28_800),
    "after_a_start": (-10, -2),
    "between_turns": (-3600, 3600),
    "in_a_resumed_session": (-60, -1, 0),
    "before_a_fork": (-60, 0),
    "after_a_kill": (-60,),
    "before_a_compaction": (-60,),
    "in_a_process_that_compacts": (-10, -1),
}
DECLINING, ALL = has("declining", "claude-sonnet-5"), has("declining", "")
RECORDINGS: dict[str, Scenario] = {
    f"clock/{name}_{seconds}": with_clock(seconds)[name] for name, steps in STEPS.items() for seconds in steps
} | {
    # Two of three answers are finished by another model; a sub-agent's and a compaction's are among the others.
    "fallback": scenario(new(AGENT), DECLINING, resume(0, READ), ALL, resume(0, COMPACT), resume(0)),
    "workflow": scenario(new("WORKFLOW please"), resume(0)),
    "casebook/blocks": scenario(new(READ)),
    "casebook/sub_agent": scenario(new(AGENT)),
    "casebook/region": scenario(has("usage", {"inference_geo": "us"}), new(READ)),
    "casebook/web_search": scenario(has("usage", {"server_tool_use": {"web_search_requests": 3}}), new(READ)),
    "casebook/fast_mode": scenario(has("usage", {"speed": "fast"}), new(READ)),
    "casebook/resume": SCENARIOS["resumed"],
    "casebook/fork": SCENARIOS["forked"],
    "casebook/fork_by_the_sdk": scenario(new(READ), sdk_fork(0), resume(1), resume(0)),
    "casebook/compaction": SCENARIOS["compacted"],
    "casebook/killed_process": SCENARIOS["killed_between"],
    "casebook/parallel_resumes": SCENARIOS["parallel_resumes"],
}


# --- records


def record(recording: Scenario, library: Path, folder: Path) -> None:
    """Run a scenario, and keep its transcripts and the served usage by session."""
    with LoopbackServer() as server, tempfile.TemporaryDirectory(prefix="record-") as temporary:
        runs = CliRuns(server, Path(temporary))
        with faked(library, clock_of(runs)):
            recording(runs)
        shutil.rmtree(folder, ignore_errors=True)
        [project] = runs.transcripts.iterdir()
        for path in project.rglob("*.jsonl"):
            target = folder / path.relative_to(project)
            target.parent.mkdir(parents=True, exist_ok=True)
            lines = map(json.loads, path.read_text("utf-8").splitlines())
            text = "".join(json.dumps(_slim(line), separators=(",", ":")) + "\n" for line in lines if _counts(line))
            target.write_text(text.replace(temporary, "/home/user/p"), encoding="utf-8")
        (folder / "served.json").write_text(json.dumps(served(runs), indent=1) + "\n", encoding="utf-8")


def _counts(line: dict[str, Any]) -> bool:
    return line["type"] not in NOTES


def _slim(line: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in line.items() if name in FIELDS}


def main() -> int:
    """Record the requested scenarios; all by default."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(RECORDINGS)}")
    parser.add_argument("--faketime", type=Path, required=True, metavar="LIBRARY")
    given = parser.parse_args()
    for name in given.names or RECORDINGS:
        record(RECORDINGS[name], given.faketime, RECORDS / name)
        print(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
