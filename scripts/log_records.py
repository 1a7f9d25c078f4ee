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
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from cc_loopback import LoopbackServer
from log_corpora import SCENARIOS, CliRuns, fork, new, resume, sdk_fork, served
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


@dataclass
class Clock:
    """The clock of the CLI, in a file that libfaketime reads at each call."""

    file: Path

    def set(self, seconds: int) -> None:
        """Set it to so many seconds after the true time."""
        self.file.write_text(f"{seconds:+d}\n", encoding="utf-8")

    @contextmanager
    def used(self, library: Path) -> Generator[None]:
        """Give it to the processes started in this block."""
        self.set(0)
        names = {
            "LD_PRELOAD": str(library), "FAKETIME_TIMESTAMP_FILE": str(self.file), "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }  # fmt: skip
        os.environ.update(names)
        try:
            yield
        finally:
            for name in names:
                del os.environ[name]


# --- scenarios


def before_a_resume(cli: CliRuns, clock: Clock, seconds: int) -> None:
    """Set the clock between two processes of a session."""
    session = new(cli, "READ please")
    clock.set(seconds)
    resume(cli, session)
    resume(cli, session, "AGENT please")


def after_a_start(cli: CliRuns, clock: Clock, seconds: int) -> None:
    """Set the clock before the first request of a process."""
    with cli.conversation() as talk:
        time.sleep(1)
        clock.set(seconds)
        talk.say("READ please")
        talk.say("hello")
    resume(cli, talk.session)


def between_turns(cli: CliRuns, clock: Clock, seconds: int) -> None:
    """Set the clock between two turns."""
    with cli.conversation() as talk:
        talk.say("READ please")
        clock.set(seconds)
        talk.say("AGENT please")
        talk.say("hello")


def in_a_resumed_session(cli: CliRuns, clock: Clock, seconds: int) -> None:
    """Set the clock between two turns of the second process."""
    session = new(cli, "READ please")
    with cli.conversation("--resume", session) as talk:
        talk.say("hello")
        clock.set(seconds)
        talk.say("AGENT please")
    resume(cli, session)


def before_a_fork(cli: CliRuns, clock: Clock, seconds: int) -> None:
    """Set the clock before a fork; both sessions go on."""
    session = new(cli, "READ please")
    clock.set(seconds)
    branch = fork(cli, session)
    resume(cli, session)
    resume(cli, branch)


def after_a_kill(cli: CliRuns, clock: Clock, seconds: int) -> None:
    """Set the clock after a process was killed."""
    session = new(cli, "READ please")
    with cli.conversation("--resume", session) as talk:
        talk.say("hello")
        talk.kill()
    clock.set(seconds)
    resume(cli, session)
    fork(cli, session)


def before_a_compaction(cli: CliRuns, clock: Clock, seconds: int) -> None:
    """Set the clock before a compaction, in the same process."""
    with cli.conversation() as talk:
        talk.say("READ please")
        clock.set(seconds)
        talk.say("/compact")
        talk.say("hello")
    resume(cli, talk.session)


def in_a_process_that_compacts(cli: CliRuns, clock: Clock, seconds: int) -> None:
    """Set the clock before the first request of a resumed session that is then compacted."""
    session = new(cli, "READ please")
    with cli.conversation("--resume", session) as talk:
        time.sleep(1)
        clock.set(seconds)
        talk.say("hello")
        talk.say("/compact")
        talk.say("READ please")


def finished_by_another_model(cli: CliRuns, _: Clock) -> None:
    """Decline two of three answers in the middle; a sub-agent's and a compaction's are among those that are not."""
    session = new(cli, "AGENT please")
    cli.declining = "claude-sonnet-5"
    resume(cli, session, "READ please")
    cli.declining = ""
    resume(cli, session, "/compact")
    resume(cli, session)


def sdk_fork_of_a_session(cli: CliRuns) -> None:
    """Fork a session with the function of the SDK, and go on in both."""
    session = new(cli, "READ please")
    resume(cli, sdk_fork(cli, session))
    resume(cli, session)


def workflow(cli: CliRuns, _: Clock) -> None:
    """Run a workflow of three agents in a session that goes on."""
    resume(cli, new(cli, "WORKFLOW please"))


def usual(cli: CliRuns, _: Clock, prompt: str = "READ please") -> None:
    """Run one process, whose answers have several blocks, and one-hour writes to the cache."""
    new(cli, prompt)


def priced(cli: CliRuns, _: Clock, usage: dict[str, Any]) -> None:
    """Run one process with other fields in the usage."""
    cli.usage = usage
    new(cli, "READ please")


def corpus(cli: CliRuns, _: Clock, scenario: Callable[[CliRuns], object]) -> None:
    """Run a scenario of `log_corpora`."""
    scenario(cli)


Recording: TypeAlias = Callable[[CliRuns, Clock], None]
_STEPS: dict[Callable[..., None], tuple[int, ...]] = {
    before_a_resume: (-3600, -2, 28_800),
    after_a_start: (-10, -2),
    between_turns: (-3600, 3600),
    in_a_resumed_session: (-60, -1, 0),
    before_a_fork: (-60, 0),
    after_a_kill: (-60,),
    before_a_compaction: (-60,),
    in_a_process_that_compacts: (-10, -1),
}
RECORDINGS: dict[str, Recording] = {
    f"clock/{scenario.__name__}_{seconds}": partial(scenario, seconds=seconds)
    for scenario, steps in _STEPS.items()
    for seconds in steps
} | {
    "fallback": finished_by_another_model,
    "workflow": workflow,
    "casebook/blocks": usual,
    "casebook/sub_agent": partial(usual, prompt="AGENT please"),
    "casebook/region": partial(priced, usage={"inference_geo": "us"}),
    "casebook/web_search": partial(priced, usage={"server_tool_use": {"web_search_requests": 3}}),
    "casebook/fast_mode": partial(priced, usage={"speed": "fast"}),
    "casebook/resume": partial(corpus, scenario=SCENARIOS["resumed"]),
    "casebook/fork": partial(corpus, scenario=SCENARIOS["forked"]),
    "casebook/fork_by_the_sdk": partial(corpus, scenario=sdk_fork_of_a_session),
    "casebook/compaction": partial(corpus, scenario=SCENARIOS["compacted"]),
    "casebook/killed_process": partial(corpus, scenario=SCENARIOS["killed_between"]),
    "casebook/parallel_resumes": partial(corpus, scenario=SCENARIOS["parallel_resumes"]),
}


# --- records


def record(recording: Recording, library: Path, folder: Path) -> None:
    """Run a scenario, and keep its transcripts and the served usage by session."""
    with LoopbackServer() as server, tempfile.TemporaryDirectory(prefix="record-") as temporary:
        runs, clock = CliRuns(server, Path(temporary)), Clock(Path(temporary) / "clock")
        with clock.used(library):
            recording(runs, clock)
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
