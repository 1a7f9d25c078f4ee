"""Make logs with any version of the CLI, and compare their sums with the usage of all calls that the API served.

    uv run scripts/log_corpora.py [VERSION ...] [--random SEED ...] [--keep FOLDER]

Each scenario runs the CLI of a wheel of claude-agent-sdk on a loopback API: resumes, forks, sub-agents, compactions,
killed processes, and forks by the SDK. Without a version it uses the CLI of this environment. Prints the
differences; --keep keeps the transcripts. A version takes a minute.
"""

import argparse
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TypeAlias
from unittest.mock import patch

from claude_agent_sdk import fork_session

from cc_convert.logs import read_logs
from cc_convert.reconcile import reconcile
from cc_loopback import LoopbackServer
from cli_wheels import wheel
from commands import finish
from workspace import ROOT

sys.path.append(str(ROOT / "integration-tests" / "support"))

from cli_logs import CLI, CliRuns

FORK = "--fork-session"
Scenario: TypeAlias = Callable[[CliRuns], object]


# --- steps; each returns the id of its session


def new(cli: CliRuns, prompt: str = "hello") -> str:
    """Start a session."""
    return str(cli.run(prompt)["session_id"])


def resume(cli: CliRuns, session: str, prompt: str = "hello", *options: str) -> str:
    """Resume a session."""
    return str(cli.run(prompt, "--resume", session, *options)["session_id"])


def fork(cli: CliRuns, session: str, prompt: str = "hello") -> str:
    """Fork a session."""
    return resume(cli, session, prompt, FORK)


def at_once(cli: CliRuns, session: str) -> None:
    """Resume a session in two processes at once."""
    with cli.conversation("--resume", session) as first, cli.conversation("--resume", session) as second:
        first.say("READ please")
        second.say("hello")
        first.say("hello")


def sdk_fork(cli: CliRuns, session: str) -> str:
    """Fork a session with the function of the SDK, which copies the transcript and runs no CLI."""
    with patch.dict("os.environ", CLAUDE_CONFIG_DIR=str(cli.transcripts.parent)):
        return fork_session(session).session_id


# --- scenarios


def resumed(cli: CliRuns) -> None:
    """A session with a sub-agent is resumed twice."""
    session = new(cli, "AGENT please")
    resume(cli, session, "READ please")
    resume(cli, session, "AGENT please")


def compacted(cli: CliRuns) -> None:
    """A session is compacted twice."""
    session = new(cli, "READ please")
    resume(cli, session, "/compact")
    resume(cli, session)
    resume(cli, session, "/compact")


def several_turns(cli: CliRuns) -> None:
    """One process answers, compacts and answers again."""
    with cli.conversation() as talk:
        for prompt in ("AGENT please", "/compact", "READ please"):
            talk.say(prompt)


def forked(cli: CliRuns) -> None:
    """A session is forked twice, and a fork is forked."""
    session = new(cli, "READ please")
    fork(cli, fork(cli, session))
    fork(cli, session, "READ please")
    resume(cli, session)


def sub_agent_then_forks(cli: CliRuns) -> None:
    """A session with a sub-agent is forked twice, and one fork has a sub-agent as well."""
    session = new(cli, "AGENT please")
    fork(cli, session)
    resume(cli, fork(cli, session, "AGENT please"))


def compaction_then_forks(cli: CliRuns) -> None:
    """A session with a compaction is forked twice, and goes on."""
    session = new(cli, "READ please")
    resume(cli, session, "/compact")
    fork(cli, session)
    fork(cli, fork(cli, session))
    resume(cli, session)


def fork_compacts_while_parent_goes_on(cli: CliRuns) -> None:
    """A fork is compacted after its parent went on."""
    session = new(cli, "READ please")
    branch = fork(cli, session)
    resume(cli, session, "READ please")
    resume(cli, branch, "/compact")
    resume(cli, session)


def fork_that_only_compacts(cli: CliRuns) -> None:
    """A fork makes no request but its compaction, and its parent goes on."""
    session = new(cli, "READ please")
    fork(cli, session, "/compact")
    resume(cli, session)


def fork_of_a_running_parent(cli: CliRuns) -> None:
    """A fork answers and is compacted while its parent, which has no total yet, runs and goes on."""
    with cli.conversation() as parent:
        parent.say("AGENT please")
        branch = fork(cli, parent.session)
        resume(cli, branch, "/compact")
        parent.say("READ please")
    fork(cli, parent.session)


def fork_of_a_running_parent_that_only_compacts(cli: CliRuns) -> None:
    """A fork is compacted while its parent runs, and makes no other request."""
    with cli.conversation() as parent:
        parent.say("READ please")
        fork(cli, parent.session, "/compact")
        parent.say("hello")


def parent_runs(cli: CliRuns) -> None:
    """A resumed session runs in one process while another process forks it."""
    session = new(cli, "READ please")
    with cli.conversation("--resume", session) as parent:
        parent.say("hello")
        fork(cli, session)
        parent.say("READ please")


def killed_parent(cli: CliRuns) -> None:
    """A process is killed after its answer; the session is forked and resumed."""
    with cli.conversation() as parent:
        parent.say("AGENT please")
        parent.kill()
    fork(cli, parent.session)
    resume(cli, parent.session, "READ please")
    fork(cli, parent.session)


def killed_between(cli: CliRuns) -> None:
    """The second of three processes of a session is killed; the third one is compacted."""
    session = new(cli, "READ please")
    with cli.conversation("--resume", session) as parent:
        parent.say("READ please")
        parent.kill()
    resume(cli, session)
    resume(cli, session, "/compact")
    fork(cli, session)


def parallel_resumes(cli: CliRuns) -> None:
    """Two processes resume one session at once; afterwards it is resumed, compacted and forked."""
    session = new(cli, "READ please")
    at_once(cli, session)
    resume(cli, session)
    resume(cli, session, "/compact")
    fork(cli, session)


def compacted_after_a_kill(cli: CliRuns) -> None:
    """The second process of a session is killed, and the third one does nothing but compact."""
    session = new(cli, "READ please")
    with cli.conversation("--resume", session) as parent:
        parent.say("hello")
        parent.kill()
    resume(cli, session, "/compact")


def forks_and_compactions(cli: CliRuns) -> None:
    """A session is resumed and forked; both are compacted, and forked again."""
    session = new(cli, "AGENT please")
    resume(cli, session)
    branch = fork(cli, session, "READ please")
    resume(cli, session, "/compact")
    resume(cli, branch, "/compact")
    fork(cli, session)
    fork(cli, branch)
    resume(cli, branch)


def forked_by_the_sdk(cli: CliRuns) -> None:
    """A session is forked by the SDK; the fork is resumed, compacted and forked."""
    session = new(cli, "READ please")
    branch = sdk_fork(cli, session)
    resume(cli, branch)
    resume(cli, branch, "/compact")
    fork(cli, branch)
    resume(cli, session)


def forked_by_the_sdk_after_a_compaction(cli: CliRuns) -> None:
    """A session with a sub-agent and a compaction is forked by the SDK, and the fork is never resumed."""
    session = new(cli, "AGENT please")
    resume(cli, session, "/compact")
    resume(cli, session)
    sdk_fork(cli, sdk_fork(cli, session))


def killed_after_a_compaction(cli: CliRuns) -> None:
    """A process is killed after a compaction, which is then in no log."""
    session = new(cli, "READ please")
    with cli.conversation("--resume", session) as parent:
        parent.say("/compact")
        parent.kill()
    resume(cli, session)


SCENARIOS: dict[str, Scenario] = {
    scenario.__name__: scenario
    for scenario in (
        resumed, compacted, several_turns, forked, sub_agent_then_forks, compaction_then_forks,
        fork_compacts_while_parent_goes_on, fork_that_only_compacts, fork_of_a_running_parent,
        fork_of_a_running_parent_that_only_compacts, parent_runs, killed_parent, killed_between, parallel_resumes,
        compacted_after_a_kill,
        forks_and_compactions, forked_by_the_sdk, forked_by_the_sdk_after_a_compaction,
    )
}  # fmt: skip
"""Scenarios whose sums a log can contain."""


def at_random(cli: CliRuns, seed: int) -> None:
    """Take eight steps selected by `seed`."""
    chance = random.Random(seed)
    sessions = [new(cli, chance.choice(["hello", "READ please", "AGENT please"]))]
    for _ in range(8):
        session = chance.choice(sessions)
        prompt = chance.choice(["hello", "READ please", "AGENT please", "/compact", "/compact"])
        step = chance.choice(["resume", "resume", "fork", "fork", "sdk", "kill", "talk", "both"])
        if step == "resume":
            resume(cli, session, prompt)
        elif step == "fork":
            sessions.append(fork(cli, session, prompt))
        elif step == "sdk":
            sessions.append(sdk_fork(cli, session))
        elif step == "both":
            at_once(cli, session)
        else:
            with cli.conversation("--resume", session, *chance.choice([(), (FORK,)])) as talk:
                talk.say("READ please")
                if step == "kill":
                    talk.kill()
                else:
                    talk.say(prompt)
            sessions.append(talk.session)


# --- the comparison

Sums: TypeAlias = tuple[int, int, int, int, int]
"""Input, output, cache read, 5m write, 1h write."""


def served(cli: CliRuns, *, compactions: bool = True) -> dict[str, Sums]:
    """Sum up the answers of the API by session."""
    answers = [answer for answer in cli.served if compactions or not answer.compaction]
    return _by_session((answer.session, answer.counts) for answer in answers)


def differences(cli: CliRuns) -> list[str]:
    """Compare the transcripts of all sessions with what the API served, and with the CLI's own totals.

    A CLI that writes no totals tells nothing of compactions, which are left out then.
    """
    logs = read_logs(cli.transcripts)
    expected = served(cli, compactions=bool(logs.totals))
    found = _by_session((row.session, row[9:14]) for row in logs.rows)
    found = {session: sums for session, sums in found.items() if any(sums)}
    return [
        *(
            f"{session}: the API served {expected.get(session)}, the logs tell {found.get(session)}"
            for session in sorted(expected.keys() | found.keys())
            if expected.get(session) != found.get(session)
        ),
        *(f"{one.session}: reconcile differs by {one.difference}" for one in reconcile(logs) if not one.agrees),
        *(f"{one.path}:{one.offset}: {one.reason}" for one in logs.problems),
    ]


def _by_session(parts: Iterable[tuple[str, Sums]]) -> dict[str, Sums]:
    sums: dict[str, Sums] = {}
    for session, (a, b, c, d, e) in parts:
        f, g, h, i, j = sums.get(session, (0, 0, 0, 0, 0))
        sums[session] = (a + f, b + g, c + h, d + i, e + j)
    return sums


def make(scenario: Scenario, cli: Path, keep: Path | None = None) -> list[str]:
    """Run a scenario in folders of its own, and return the differences; with `keep`, its transcripts stay there."""
    with LoopbackServer() as server, tempfile.TemporaryDirectory(prefix="corpus-") as folder:
        runs = CliRuns(server, Path(folder), cli)
        scenario(runs)
        if keep:
            shutil.copytree(runs.transcripts, keep)
        return differences(runs)


async def work(versions: list[str], seeds: list[int], keep: Path | None) -> list[str]:
    """Run all scenarios with each version, and return the differences."""
    scenarios = SCENARIOS | {f"random-{seed}": partial(at_random, seed=seed) for seed in seeds}
    failed: list[str] = []
    for version in versions or [""]:
        async with wheel(version) if version else nullcontext((CLI, "installed")) as (cli, sdk):
            for name, scenario in scenarios.items():
                found = make(scenario, cli, keep / sdk / name if keep else None)
                failed += [f"SDK {sdk}, {name}: {one}" for one in found]
                print(f"SDK {sdk}  {name:<48}{'exact' if not found else f'{len(found)} differences'}")
    return failed


def main() -> int:
    """Make the requested logs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="of claude-agent-sdk")
    parser.add_argument(
        "--random", nargs="*", type=int, default=[], metavar="SEED", help="runs of random steps as well"
    )
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where the transcripts stay")
    given = parser.parse_args()
    return finish(work(given.versions, given.random, given.keep))


if __name__ == "__main__":
    sys.exit(main())
