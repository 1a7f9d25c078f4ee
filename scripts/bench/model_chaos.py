"""Mixed runs of agents at once, while the API fails and processes are killed: who gets what, and what is left over.

    python scripts/bench/model_chaos.py --runs 200 --at-once 20

Each run has a mark of its own in its prompt and must end with an output that has this mark and no other, or with an
error that belongs to what was done: a rate limit (429), an overload (529), or a lost connection (a stream that was cut,
a process that was killed). Prints what was done and how the runs ended; exits with 1 if a run ended wrong or hung, if
the processes do not come to rest, or if a process, a file, a descriptor or a task is left.
"""

import argparse
import asyncio
import logging
import os
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, NativeOutput, ToolOutput
from pydantic_ai.exceptions import ModelConnectionError, ModelOverloadedError, ModelRateLimitError

from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider

# A run takes well below a second, and some seconds where it waits for others and for new processes.
RUN_SECONDS = 60.0
# The CLI ends a turn within milliseconds of the answer's end, and some seconds on a busy machine.
REST_SECONDS = 10.0
MARK = re.compile(r"<\d+>")
EXPECTED = (ModelRateLimitError, ModelOverloadedError, ModelConnectionError)


class Found(BaseModel):
    """What was found."""

    mark: str


def respond(body: dict[str, Any]) -> Any:
    """Answer with the mark of the last prompt, in the form that is asked for, after calling the tool there is."""
    mark = [found for message in body["messages"] for found in MARK.findall(str(message["content"]))][-1]
    tools = {tool["name"] for tool in body.get("tools", ())}
    last = body["messages"][-1]["content"][-1]
    if "look" in tools and last["type"] != "tool_result":
        return [{"type": "tool_use", "name": "look", "input": {"mark": mark}}]
    if "final_result" in tools:
        return [{"type": "tool_use", "name": "final_result", "input": {"mark": mark}}]
    if "format" in body.get("output_config", {}):
        return f'{{"mark": "{mark}"}}'
    return f"Found {mark}. " + "And so on. " * 10


def looking(model: ClaudeCodeModel, **options: Any) -> Agent[object, Any]:
    """Return an agent with a tool."""
    agent: Agent[object, Any] = Agent(model, **options)

    @agent.tool_plain
    async def look(mark: str) -> str:
        """Look."""
        await asyncio.sleep(0.01)
        return f"saw {mark}"

    return agent


async def text(model: ClaudeCodeModel, mark: str) -> object:
    """Ask for a text, and once more."""
    agent = Agent(model)
    first = await agent.run(f"Find {mark}.")
    return (await agent.run(f"Once more {mark}.", message_history=first.all_messages())).output


async def tool(model: ClaudeCodeModel, mark: str) -> object:
    """Have a tool called."""
    return (await looking(model).run(f"Find {mark}.")).output


async def structured(model: ClaudeCodeModel, mark: str) -> object:
    """Ask for an output, by the API's format and by a tool."""
    native = await Agent(model, output_type=NativeOutput(Found)).run(f"Find {mark}.")
    called = await Agent(model, output_type=ToolOutput(Found)).run(f"Find {mark}.")
    return [native.output.mark, called.output.mark]


async def streamed(model: ClaudeCodeModel, mark: str) -> object:
    """Read a stream to its end."""
    async with looking(model).run_stream(f"Find {mark}.") as stream:
        return [piece async for piece in stream.stream_text(debounce_by=None)][-1]


async def left(model: ClaudeCodeModel, mark: str) -> object:
    """Leave a stream, and ask again."""
    async with Agent(model).run_stream(f"Leave {mark}.") as stream:
        async for _ in stream.stream_text(debounce_by=None):
            break
    return (await Agent(model).run(f"Find {mark}.")).output


async def cancelled(model: ClaudeCodeModel, mark: str) -> object:
    """Cancel a run at some moment, and ask again."""
    task = asyncio.create_task(looking(model).run(f"Cancel {mark}."))
    await asyncio.wait({task}, timeout=random.uniform(0, 0.2))
    task.cancel()
    await asyncio.wait({task})
    return (await Agent(model).run(f"Find {mark}.")).output


async def approved(model: ClaudeCodeModel, mark: str) -> object:
    """Stop at an approval, and go on with it."""
    agent: Agent[object, Any] = Agent(model, output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def look(mark: str) -> str:
        """Look."""
        return f"saw {mark}"

    first = await agent.run(f"Find {mark}.")
    granted = DeferredToolResults(approvals={call.tool_call_id: True for call in first.output.approvals})
    return (await agent.run(message_history=first.all_messages(), deferred_tool_results=granted)).output


KINDS: list[Callable[[ClaudeCodeModel, str], Awaitable[object]]] = [
    text,
    tool,
    structured,
    streamed,
    left,
    cancelled,
    approved,
]


class Chaos:
    """The runs, what is done to them, and what comes of it."""

    def __init__(self, api: LoopbackServer, provider: ClaudeCodeProvider) -> None:
        self._api = api
        self._provider = provider
        self._model = ClaudeCodeModel(provider=provider)
        self.done: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        self.wrong: list[str] = []

    async def run_all(self, runs: int, at_once: int) -> None:
        """Make the runs, so many at once, in the storm."""
        slots = asyncio.Semaphore(at_once)
        storm = asyncio.create_task(self._storm())
        try:
            await asyncio.gather(*(self._run(number, slots) for number in range(runs)))
        finally:
            storm.cancel()
            await asyncio.wait({storm})

    async def _run(self, number: int, slots: asyncio.Semaphore) -> None:
        kind, mark = KINDS[number % len(KINDS)], f"<{number}>"
        async with slots:
            try:
                async with asyncio.timeout(RUN_SECONDS):
                    output = str(await kind(self._model, mark))
            except EXPECTED as error:
                self.ended[type(error).__name__] += 1
                return
            except Exception as error:
                self.wrong.append(f"{kind.__name__} {mark}: {type(error).__name__}: {error}")
                return
        if {*MARK.findall(output)} == {mark}:
            self.ended["right"] += 1
        else:
            self.wrong.append(f"{kind.__name__} {mark}: {output}")

    async def _storm(self) -> None:
        """Let some of the requests that will come fail, in proportion to those that have come."""
        seen = 0
        while True:
            await asyncio.sleep(0.005)
            new, seen = len(self._api.calls) - seen, len(self._api.calls)
            for _ in range(new):
                self._strike(random.random())

    def _strike(self, chance: float) -> None:
        match int(chance * 30):
            case 0 | 1:
                self._api.fail_next(429, headers={"retry-after": "0.01"})
                self.done["429"] += 1
            case 2 | 3:
                self._api.fail_next(529)
                self.done["529"] += 1
            case 4 | 5:
                self._api.fail_next(after_events=random.randint(1, 12))
                self.done["cut"] += 1
            case 6:
                self.done["killed"] += self._kill()
            case _:
                pass

    def _kill(self) -> bool:
        if not (pids := self._provider.transport.pids):
            return False
        try:
            psutil.Process(random.choice(pids)).kill()
        except psutil.NoSuchProcess:
            return False
        return True


async def what_is_busy(provider: ClaudeCodeProvider, pool: int) -> list[str]:
    """Return what is still being done, or held, after all runs have ended and some time has passed."""
    for _ in range(int(REST_SECONDS / 0.01)):
        if "busy=0 starting=0" in repr(provider.transport):
            break
        await asyncio.sleep(0.01)
    else:
        return [repr(provider.transport)]
    children = psutil.Process().children()
    # Each process has another one beside it, which ends it if this one dies.
    return [] if len(children) <= 2 * pool else [f"{len(children)} processes for a pool of {pool}"]


async def tasks_left() -> list[str]:
    """Return the tasks that do not end by themselves."""
    others: list[asyncio.Task[Any]] = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    if others:
        await asyncio.wait(others, timeout=REST_SECONDS)
    return [str(task) for task in others if not task.done()]


def what_is_left(folder: Path, descriptors: int) -> list[str]:
    """Return the processes and files that are left, and whether there are more open descriptors than before."""
    _, alive = psutil.wait_procs(psutil.Process().children(recursive=True), timeout=5)
    more = psutil.Process().num_fds() - descriptors
    return [*map(str, alive), *map(str, folder.iterdir()), *([f"{more} descriptors more"] if more > 0 else [])]


async def warm_up() -> None:
    """Make a run, so that what is made once, and stays, is there."""
    with LoopbackServer(respond) as api:
        async with ClaudeCodeProvider(env=api.env(), pool=1) as provider:
            await tool(ClaudeCodeModel(provider=provider), "<0>")


async def main(runs: int, at_once: int, pool: int, seed: int, folder: Path) -> int:
    """Make the runs, print what came of them, and return the exit status."""
    random.seed(seed)
    await warm_up()
    descriptors = psutil.Process().num_fds()
    begun = time.perf_counter()
    with LoopbackServer(respond, event_delay=0.002) as api:
        async with ClaudeCodeProvider(env=api.env(), pool=pool, max_retries=1) as provider:
            chaos = Chaos(api, provider)
            await chaos.run_all(runs, at_once)
            starts = len(provider.transport.start_seconds)
            busy = await what_is_busy(provider, pool)
    left_over = [*busy, *await tasks_left(), *what_is_left(folder, descriptors)]
    print(f"{runs} runs, {at_once} at once on {pool} processes, in {time.perf_counter() - begun:.1f} s; seed {seed}")
    print(f"  done to them: {dict(chaos.done)}; processes started: {starts}")
    print(f"  ended: {dict(chaos.ended)}; wrong: {len(chaos.wrong)}; left over: {len(left_over)}")
    for line in [*chaos.wrong, *left_over]:
        print(f"  {line[:500]}")
    return 1 if chaos.wrong or left_over else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Mixed runs of agents while the API fails and processes are killed.")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--at-once", type=int, default=20)
    parser.add_argument("--pool", type=int, default=4)
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args()
    # The SDK tells of each process that dies, which is what happens here.
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="chaos-") as name:
        os.environ["TMPDIR"] = tempfile.tempdir = name
        seed = random.randrange(2**32) if given.seed is None else given.seed
        status = asyncio.run(main(given.runs, given.at_once, given.pool, seed, Path(name)))
    sys.exit(status)
