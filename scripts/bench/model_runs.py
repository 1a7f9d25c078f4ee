"""Measure an agent's runs through Claude Code, each figure compared with its parts, measured in the same run.

A run replaces a turn with the SDK's client on a live process, and a run with pydantic-ai's own `AnthropicModel`. All
use the loopback API, which answers at once.
"""

from collections.abc import Mapping, Sequence

from line_process import LineProcess

from .arena import (
    CLIENT,
    LANGCHAIN_PEER,
    OURS,
    OURS_IN_CLI,
    OURS_OVER_BRIDGE,
    PEER,
    PLAIN,
    QUERY,
    Rounds,
    contenders,
    scripted_api,
)  # fmt: skip
from .harness import Bound, Effort, Figure, Group, Suite, ratios_of_neighbours

CONVERSATIONS = 12
TURNS = 12
WARM_UP_TURNS = 2
FIRST_RUNS = 6
INDEPENDENT = 60
INDEPENDENT_PER_QUERY = 6
HISTORIES = (2, 20, 200)
HISTORY_CONVERSATIONS = 5
HISTORY_TURNS = 6
STREAMS = 30
FEW_WORDS, MANY_WORDS = 50, 250

PARTS_TITLE = "Warm run, in multiples of its parts"
TWO_TURNS = "two turns of the SDK's client"
RUN_PARTS = "run / bare turn and run with AnthropicModel"
TOOL_PARTS = "run / two bare turns and run with AnthropicModel"


def parts(mine: Sequence[float], turns: Sequence[float], framework: Sequence[float]) -> list[float]:
    """Return each run's ratio to the sum of the parts: Claude Code's calls, and the framework's part."""
    return [run / (turn + other) for run, turn, other in zip(mine, turns, framework, strict=True)]


async def measure_text(effort: Effort) -> list[Figure]:
    """Compare warm runs without tools: time, and our process's processor time."""
    played = await conversations(effort, (PLAIN, OURS), tool=False)
    times = played.milliseconds
    work = {name: played.processor[name] for name in (PLAIN, OURS)}
    own = [mine - floor for mine, floor in zip(work[OURS], work[PLAIN], strict=True)]
    return [
        *Group("Warm text run in a conversation").figures(times, PLAIN),
        Group(PARTS_TITLE, "times").figure(
            RUN_PARTS, parts(times[OURS], times[CLIENT], times[PLAIN]), Bound(1.0)
        ),  # MSG-50
        *times_as_long(times, {QUERY: Bound(10.0, least=True), PEER: Bound(10.0, least=True)}),
        *Group("Processor time of the Python process for a warm text run").figures(work, PLAIN),
        Group("Processor time of the Python process, without that for AnthropicModel").figure(OURS, own, Bound(3.0)),
    ]


async def measure_tool(effort: Effort) -> list[Figure]:
    """Compare warm runs with a tool call, which make two requests; `query()` uses the CLI's own loop as well."""
    times = (await conversations(effort, (PLAIN, OURS, OURS_IN_CLI, OURS_OVER_BRIDGE), tool=True)).milliseconds
    bare = times.pop(CLIENT)
    pairs = [first + second for first, second in zip(bare[::2], bare[1::2], strict=True)]
    return [
        *Group("Warm run with one tool call").figures({**times, TWO_TURNS: pairs}, PLAIN),
        Group(PARTS_TITLE, "times").figure(TOOL_PARTS, parts(times[OURS], pairs, times[PLAIN]), Bound(1.1)),  # MSG-51
        *times_as_long(times, {PEER: Bound(10.0, least=True)}),
        *times_as_long(times, mine=OURS_IN_CLI),
    ]


async def conversations(effort: Effort, names: Sequence[str], *, tool: bool) -> Rounds:
    """Run conversations in each round, and less often the contenders that start a process for each run."""
    played = Rounds()
    async with (
        scripted_api() as env,
        contenders(env, effort, *names) as fast,
        contenders(env, effort, QUERY, PEER) as slow,
        contenders(env, effort, CLIENT) as client,
    ):
        for _ in range(effort.times(CONVERSATIONS)):
            await played.begin({**fast, **client}, tool=tool)
            for number in range(WARM_UP_TURNS + effort.times(TURNS)):
                counts = number >= WARM_UP_TURNS
                await played.play(fast, "turn", counts=counts)
                for _ in range(2 if tool else 1):
                    await played.play(client, "turn", counts=counts)
            await played.begin(slow, tool=tool)
            await played.play(slow, "turn")
    return played


def times_as_long(
    times: dict[str, list[float]], bounds: Mapping[str, Bound] | None = None, mine: str = OURS
) -> list[Figure]:
    """Return the ratio to our time for contenders that start a process for each run."""
    group = Group(f"Times as long as {mine}", "times")
    return [
        group.figure(name, ratios_of_neighbours(times[name], times[mine]), (bounds or {}).get(name))
        for name in (QUERY, PEER, LANGCHAIN_PEER)
        if name in times
    ]


async def measure_first(effort: Effort) -> list[Figure]:
    """Compare the first run in a Python process that has imported everything and started nothing."""
    played = Rounds()
    async with scripted_api() as env:
        for _ in range(effort.times(FIRST_RUNS)):
            async with contenders(env, effort, PLAIN, OURS, QUERY, PEER, LANGCHAIN_PEER) as workers:
                await played.play(workers, "run")
    times = played.milliseconds
    return [*Group("First run of a process").figures(times, PLAIN), *times_as_long(times)]


async def measure_independent(effort: Effort) -> list[Figure]:
    """Compare runs without a conversation with `claude_agent_sdk.query()`."""
    played = Rounds()
    async with (
        scripted_api() as env,
        contenders(env, effort, PLAIN, OURS) as fast,
        contenders(env, effort, QUERY, PEER, LANGCHAIN_PEER) as slow,
    ):
        for number in range(-2, effort.times(INDEPENDENT, INDEPENDENT_PER_QUERY)):
            await played.play(fast, "run", counts=number >= 0)
            if number % INDEPENDENT_PER_QUERY == 0:
                await played.play(slow, "run")
    times = played.milliseconds
    group = Group("Independent run")
    # MSG-52
    return [*group.figures(times, PLAIN), *times_as_long(times, {QUERY: Bound(8.0, least=True)})]


async def measure_history(effort: Effort) -> list[Figure]:
    """Compare conversations that are imported, and then continued."""
    figures: list[Figure] = []
    async with scripted_api() as env, contenders(env, effort, PLAIN, OURS, PEER) as workers:
        for messages in HISTORIES[: effort.times(len(HISTORIES))]:
            over, on = await histories(effort, workers, messages)
            for title, played in (("taken over from elsewhere", over), ("gone on with", on)):
                figures += Group(f"History of {messages} messages, {title}").figures(played.milliseconds, PLAIN)
    return figures


async def histories(effort: Effort, workers: dict[str, LineProcess], messages: int) -> tuple[Rounds, Rounds]:
    """Time the first runs on a history, and those after them."""
    over, on = Rounds(), Rounds()
    for _ in range(effort.times(HISTORY_CONVERSATIONS)):
        await over.begin(workers, messages=messages)
        await over.play(workers, "turn")
        fast = {name: worker for name, worker in workers.items() if name != PEER}
        for _ in range(effort.times(HISTORY_TURNS)):
            await on.play(fast, "turn")
        await on.play({name: worker for name, worker in workers.items() if name == PEER}, "turn")
    return over, on


async def measure_stream(effort: Effort) -> list[Figure]:
    """Compare streams with few and with many words; the difference is the cost of the words."""
    few, many = Rounds(), Rounds()
    async with scripted_api() as env, contenders(env, effort, PLAIN, OURS) as workers:
        for number in range(-2, effort.times(STREAMS)):
            await few.play(workers, "stream", counts=number >= 0, words=FEW_WORDS)
            await many.play(workers, "stream", counts=number >= 0, words=MANY_WORDS)
    hundreds = (MANY_WORDS - FEW_WORDS) / 100
    pairs = {name: zip(few.processor[name], many.processor[name], strict=True) for name in workers}
    work = {name: [(more - less) / hundreds for less, more in pairs[name]] for name in workers}
    own = [mine - floor for mine, floor in zip(work[OURS], work[PLAIN], strict=True)]
    return [
        *Group("Time to the first streamed word").figures(few.first, PLAIN),
        *Group("Processor time of the Python process for 100 deltas").figures(work, PLAIN),
        Group("Processor time for 100 deltas, without that for AnthropicModel").figure(OURS, own, Bound(1.0)),
    ]


SUITES = (
    Suite("text", "Warm runs without tools, and their processor time in the Python process", measure_text),
    Suite("tool", "Warm runs with one tool call", measure_tool),
    Suite("first", "The first run of a process", measure_first),
    Suite("independent", "Runs without a conversation", measure_independent),
    Suite("stream", "Streams: the first word, and the Python process's work for each", measure_stream),
    Suite("history", f"Conversations of {HISTORIES[0]} to {HISTORIES[-1]} messages", measure_history),
)
