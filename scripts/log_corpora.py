"""Make logs with any CLI version, and compare their sums with the usage in all calls that the API served.

    uv run scripts/log_corpora.py [VERSION ...] [--random SEED ...] [--keep FOLDER]

Each scenario runs the CLI from a claude-agent-sdk wheel on a loopback API: resumes, forks, sub-agents, compactions,
killed processes, and forks by the SDK. Without a version it uses this environment's CLI. Prints the differences;
--keep keeps the transcripts. A version takes a minute.
"""

import argparse
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TypeAlias
from unittest.mock import patch

from claude_agent_sdk import fork_session

from cc_convert.logs import read_logs
from cc_convert.reconcile import reconcile
from cc_loopback import LoopbackServer
from commands import finish, wheel
from workspace import ROOT

sys.path.append(str(ROOT / "integration-tests" / "support"))

from cli_logs import CLI, CliRuns

FORK = "--fork-session"

HELLO, READ, AGENT, COMPACT = "hello", "READ please", "AGENT please", "/compact"

Step: TypeAlias = Callable[[CliRuns, list[str]], object]
"""A step in a scenario. The list has the ids of all sessions, the oldest first; steps add to it."""


def new(prompt: str) -> Step:
    return lambda cli, ids: ids.append(str(cli.run(prompt)["session_id"]))


def resume(index: int, prompt: str = HELLO) -> Step:
    return lambda cli, ids: cli.run(prompt, "--resume", ids[index])


def fork(index: int, prompt: str = HELLO) -> Step:
    return lambda cli, ids: ids.append(str(cli.run(prompt, "--resume", ids[index], FORK)["session_id"]))


def sdk_fork(index: int) -> Step:
    """Fork a session with the SDK's function, which copies the transcript and runs no CLI."""

    def step(cli: CliRuns, ids: list[str]) -> None:
        with patch.dict("os.environ", CLAUDE_CONFIG_DIR=str(cli.transcripts.parent)):
            ids.append(fork_session(ids[index]).session_id)

    return step


def at_once(index: int) -> Step:
    def step(cli: CliRuns, ids: list[str]) -> None:
        resumed = ("--resume", ids[index])
        with cli.conversation(*resumed) as first, cli.conversation(*resumed) as second:
            first.say(READ)
            second.say(HELLO)
            first.say(HELLO)

    return step


def process(*turns: str | Step, of: int | None = None, forks: bool = False, is_killed: bool = False) -> Step:
    """Let a process take prompts, between which other steps may come.

    The process resumes the session `of` (None: a new session), or `forks` it; `is_killed`: after the last answer.
    """

    def step(cli: CliRuns, ids: list[str]) -> None:
        options = [] if of is None else ["--resume", ids[of], *([FORK] if forks else [])]
        with cli.conversation(*options) as talk:
            for turn in turns:
                if not isinstance(turn, str):
                    turn(cli, ids)
                    continue
                talk.say(turn)
                if talk.session not in ids:
                    ids.append(talk.session)
            if is_killed:
                talk.kill()

    return step


# --- scenarios; sessions are numbered from 0

SCENARIOS: dict[str, list[Step]] = {
    "resumed": [new(AGENT), resume(0, READ), resume(0, AGENT)],
    "compacted": [new(READ), resume(0, COMPACT), resume(0), resume(0, COMPACT)],
    "several_turns": [process(AGENT, COMPACT, READ)],
    "forked": [new(READ), fork(0), fork(1), fork(0, READ), resume(0)],
    "sub_agent_then_forks": [new(AGENT), fork(0), fork(0, AGENT), resume(2)],
    "compaction_then_forks": [new(READ), resume(0, COMPACT), fork(0), fork(0), fork(2), resume(0)],
    "fork_compacts_while_parent_goes_on": [new(READ), fork(0), resume(0, READ), resume(1, COMPACT), resume(0)],
    "fork_that_only_compacts": [new(READ), fork(0, COMPACT), resume(0)],
    # The parent has no total yet while it runs.
    "fork_of_a_running_parent": [process(AGENT, fork(0), resume(1, COMPACT), READ), fork(0)],
    "fork_of_a_running_parent_that_only_compacts": [process(READ, fork(0, COMPACT), HELLO)],
    "parent_runs": [new(READ), process(HELLO, fork(0), READ, of=0)],
    "killed_parent": [process(AGENT, is_killed=True), fork(0), resume(0, READ), fork(0)],
    "killed_between": [new(READ), process(READ, of=0, is_killed=True), resume(0), resume(0, COMPACT), fork(0)],
    "parallel_resumes": [new(READ), at_once(0), resume(0), resume(0, COMPACT), fork(0)],
    "parallel_resumes_around_a_compaction": [new(READ), at_once(0), resume(0, COMPACT), at_once(0)],
    "compacted_after_a_kill": [new(READ), process(HELLO, of=0, is_killed=True), resume(0, COMPACT)],
    "forks_and_compactions": [
        new(AGENT),
        resume(0),
        fork(0, READ),
        resume(0, COMPACT),
        resume(1, COMPACT),
        fork(0),
        fork(1),
        resume(1),
    ],
    "forks_that_only_compact": [new(READ), resume(0, COMPACT), fork(0, COMPACT), fork(1, COMPACT), at_once(2)],
    "forked_by_the_sdk": [new(READ), sdk_fork(0), resume(1), resume(1, COMPACT), fork(1), resume(0)],
    # The fork is never resumed.
    "forked_by_the_sdk_after_a_compaction": [new(AGENT), resume(0, COMPACT), resume(0), sdk_fork(0), sdk_fork(1)],
}
"""Scenarios whose sums a log can contain."""

# The compaction is then in no log.
killed_after_a_compaction = [new(READ), process(COMPACT, of=0, is_killed=True), resume(0)]


def at_random(cli: CliRuns, ids: list[str], seed: int) -> None:
    """Take nine steps selected by `seed`; the first creates a session."""
    chance = random.Random(seed)
    new(chance.choice([HELLO, READ, AGENT]))(cli, ids)
    for _ in range(8):
        index, prompt = chance.randrange(len(ids)), chance.choice([HELLO, READ, AGENT, COMPACT, COMPACT])
        forks = chance.choice([False, True])
        steps = [
            *[resume(index, prompt), fork(index, prompt)] * 2,
            sdk_fork(index),
            at_once(index),
            process(READ, of=index, forks=forks, is_killed=True),
            process(READ, prompt, of=index, forks=forks),
        ]
        chance.choice(steps)(cli, ids)


# --- the comparison

Sums: TypeAlias = Sequence[int]
"""Input, output, cache read, 5m write, 1h write."""


def differences(cli: CliRuns) -> list[str]:
    """Compare all transcripts with the usage that the API served, and with the CLI's own totals.

    A CLI that writes no totals does not record compactions, which do not count then.
    """
    logs = read_logs(cli.transcripts)
    answers = [answer for answer in cli.served if logs.totals or not answer.compaction]
    expected = _by_session((answer.session, answer.counts) for answer in answers)
    rows = _by_session((row.session, row[9:14]) for row in logs.rows)
    rows = {session: sums for session, sums in rows.items() if any(sums)}
    return [
        *(
            f"{session}: the API served {expected.get(session)}, the logs have {rows.get(session)}"
            for session in sorted(expected.keys() | rows.keys())
            if expected.get(session) != rows.get(session)
        ),
        *(f"{total.session}: reconcile differs by {total.difference}" for total in reconcile(logs) if not total.agrees),
        *(f"{problem.path}:{problem.offset}: {problem.reason}" for problem in logs.problems),
    ]


def _by_session(parts: Iterable[tuple[str, Sums]]) -> dict[str, list[int]]:
    sums: dict[str, list[int]] = {}
    for session, counts in parts:
        sums[session] = [total + count for total, count in zip(sums.get(session, [0] * 5), counts, strict=True)]
    return sums


def make(steps: Iterable[Step], cli: Path, keep: Path | None = None) -> list[str]:
    """Take steps in temporary folders, and return the differences; with `keep`, the transcripts stay there."""
    with LoopbackServer() as server, tempfile.TemporaryDirectory(prefix="corpus-") as folder:
        runs = CliRuns(server, Path(folder), cli)
        ids: list[str] = []
        for step in steps:
            step(runs, ids)
        if keep:
            shutil.copytree(runs.transcripts, keep)
        return differences(runs)


async def work(versions: list[str], seeds: list[int], keep: Path | None) -> list[str]:
    scenarios = SCENARIOS | {f"random-{seed}": [partial(at_random, seed=seed)] for seed in seeds}
    failed: list[str] = []
    for version in versions or [""]:
        async with wheel(version) if version else nullcontext((CLI, "installed")) as (cli, sdk):
            for name, steps in scenarios.items():
                lines = make(steps, cli, keep / sdk / name if keep else None)
                failed += [f"SDK {sdk}, {name}: {line}" for line in lines]
                print(f"SDK {sdk}  {name:<48}{f'{len(lines)} differences' if lines else 'exact'}")
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="claude-agent-sdk versions")
    parser.add_argument("--random", nargs="*", type=int, default=[], metavar="SEED", help="also take random steps")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where the transcripts stay")
    arguments = parser.parse_args()
    return finish(work(arguments.versions, arguments.random, arguments.keep))


if __name__ == "__main__":
    sys.exit(main())
