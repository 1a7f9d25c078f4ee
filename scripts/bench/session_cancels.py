"""Cancel and interrupt turns at random, in many sessions in parallel, and search for mixed-up answers (SES-82).

    python scripts/bench/session_cancels.py [--turns 1000] [--workers 8] [--seed 0]

Each worker has a session and sends prompts that the loopback API echoes after up to 30 ms. A third of the turns is
cancelled at a random moment, a third interrupted, a third read to its end; half of them are streams that may be left
early. Then follow a prompt that must get its own answer, and checks of the API's requests, of memory, and of processes
and files that were left behind.

Prints the findings; exits with 1 if answers were mixed up, a turn hung, something was left behind, or grew too much.
"""

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from collections import Counter
from typing import Any

import anyio
import psutil
from claude_agent_sdk import ResultMessage

from cc_loopback import LoopbackServer
from cc_session import Session, Timeouts, TurnError, sealed_options

# Seconds. A turn takes some 20 ms, or 200 with eight at once on two cores; one that takes this long hangs.
HANGS_AFTER = 60.0
# An idle process takes some 160 MB of resident memory, one after long use up to 350.
MOST_RESIDENT_MB = 400
# Long enough for a busy machine: a cancelled turn has to end without a restart of its process.
TIMEOUTS = Timeouts(close=20)


class Findings:
    """Findings of a run."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.slowest = 0.0
        self.resident_mb = 0.0

    def report(self, left: list[str]) -> bool:
        """Print the findings, and return whether all is well."""
        print(f"  outcomes                {dict(self.outcomes)}")
        print(f"  answers mixed up        {len(self.wrong)} {self.wrong[:5]}")
        print(f"  slowest turn            {self.slowest * 1000:.0f} ms")
        print(f"  largest process         {self.resident_mb:.0f} MB")
        print(f"  left behind             {left}")
        return not self.wrong and not left and self.resident_mb <= MOST_RESIDENT_MB


async def echo(body: dict[str, Any]) -> str:
    """Answer with the last prompt, after a short delay."""
    await asyncio.sleep(random.random() * 0.03)
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else content[-1]["text"]


async def streamed(session: Session, prompt: str) -> str | None:
    """Read a turn as a stream, or leave it early; return its text if it was read to its end."""
    leave_after = random.randrange(20)
    async with session.stream(prompt) as stream:
        async for message in stream:
            if isinstance(message, ResultMessage):
                continue
            leave_after -= 1
            if leave_after < 0:
                return None
    return stream.turn.text


async def ran(session: Session, prompt: str) -> str | None:
    """Run a turn, and return its text."""
    return (await session.run(prompt)).text


async def disturbed(session: Session, prompt: str, findings: Findings) -> None:
    """Run one turn and cancel or interrupt it."""
    began = time.monotonic()
    task = asyncio.ensure_future(random.choice((ran, streamed))(session, prompt))
    await asyncio.wait({task}, timeout=random.random() * 0.06)
    what = random.choice(("cancel", "interrupt", "none"))
    if what == "cancel":
        task.cancel()
    elif what == "interrupt":
        await session.interrupt()
    try:
        text = await task
        outcome = "left" if text is None else "answered"
        if text not in (None, prompt):
            findings.wrong.append(f"{prompt}: {text}")
    except asyncio.CancelledError:
        outcome = "cancelled"
    except TurnError as error:
        outcome = error.kind
    findings.outcomes[outcome] += 1
    findings.slowest = max(findings.slowest, time.monotonic() - began)


async def work(number: int, turns: int, api: LoopbackServer, findings: Findings) -> None:
    """Run turns in one session, and check that its later answers are right."""
    options = sealed_options(system_prompt="You are terse.", model="claude-sonnet-5", env=api.env())
    async with await Session.open(options, timeouts=TIMEOUTS) as session:
        for index in range(turns):
            with anyio.fail_after(HANGS_AFTER):
                await disturbed(session, f"{number}-{index}", findings)
            if index % 10 == 9:
                with anyio.fail_after(HANGS_AFTER):
                    if (text := (await session.run(f"{number}-{index}!")).text) != f"{number}-{index}!":
                        findings.wrong.append(f"{number}-{index}!: {text}")
                    await session.reset()
        if session.pid is not None:
            findings.resident_mb = max(findings.resident_mb, psutil.Process(session.pid).memory_info().rss / 1e6)


async def run(turns: int, workers: int) -> bool:
    """Run workers in parallel, and report."""
    findings = Findings()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="t-") as folder:
        tempfile.tempdir = folder
        async with LoopbackServer(echo) as api:
            await asyncio.gather(*(work(number, turns // workers, api, findings) for number in range(workers)))
        left = [child.name() for child in psutil.Process().children(recursive=True)]
        left += os.listdir(folder)
        tempfile.tempdir = None
    print(f"{turns} turns by {workers} workers in {time.monotonic() - began:.1f} s:")
    return findings.report(left)


def main() -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--turns", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    return 0 if asyncio.run(run(arguments.turns, arguments.workers)) else 1


if __name__ == "__main__":
    sys.exit(main())
