"""Measure an agent's runs through Claude Code, each figure compared with its parts, measured in the same run.

A warm run in a conversation, compared with a bare turn with the SDK's client on a live process and a run with
pydantic-ai's own `AnthropicModel`, since it replaces both. A run with a tool call, compared with two such turns and
such a run. The first run in a process; runs without a conversation, compared with `claude_agent_sdk.query()`;
conversations with 2 to 200 messages, imported and continued. Streams: the time to the first word, and the Python
process's work for a hundred words. The bytes that the API receives. All use the loopback API, which answers at once.
"""

from collections.abc import Mapping, Sequence

from line_process import LineProcess

from .arena import CLIENT, OURS, OURS_IN_CLI, OURS_OVER_BRIDGE, PEER, PLAIN, QUERY, Arena, Rounds, arena
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
TIMES_BYTES = 1.1
PROMPTS = {"short": "Hello?", "20 KB": "Hello? " * 3_000}

PARTS_TITLE = "Warm run, in multiples of its parts"
TWO_TURNS = "two turns of the SDK's client"
RUN_PARTS = "run / bare turn and run with AnthropicModel"
TOOL_PARTS = "run / two bare turns and run with AnthropicModel"


def parts(mine: Sequence[float], turns: Sequence[float], framework: Sequence[float]) -> list[float]:
    """Return each run's ratio to the sum of the parts: Claude Code's calls, and the framework's part."""
    return [run / (turn + other) for run, turn, other in zip(mine, turns, framework, strict=True)]


async def measure_text(effort: Effort) -> list[Figure]:
    """Compare warm runs without tools: time, and our process's processor time."""
    played, workers = await conversations(effort, (PLAIN, OURS), (QUERY, PEER), tool=False)
    times = played.ordered(played.milliseconds, workers)
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
    played, workers = await conversations(
        effort, (PLAIN, OURS, OURS_IN_CLI, OURS_OVER_BRIDGE), (QUERY, PEER), tool=True
    )
    times = played.ordered(played.milliseconds, workers)
    bare = played.milliseconds[CLIENT]
    pairs = [first + second for first, second in zip(bare[::2], bare[1::2], strict=True)]
    return [
        *Group("Warm run with one tool call").figures({**times, TWO_TURNS: pairs}, PLAIN),
        Group(PARTS_TITLE, "times").figure(TOOL_PARTS, parts(times[OURS], pairs, times[PLAIN]), Bound(1.1)),  # MSG-51
        *times_as_long(times, {PEER: Bound(10.0, least=True)}),
        *times_as_long(times, mine=OURS_IN_CLI),
    ]


async def conversations(
    effort: Effort, always: Sequence[str], slow: Sequence[str], *, tool: bool
) -> tuple[Rounds, list[str]]:
    """Run conversations in each round, and less often the contenders that start a process for each run."""
    played = Rounds()
    async with arena(effort) as place, place.contenders(*always) as fast, place.contenders(*slow) as others:
        async with place.contenders(CLIENT) as client:
            for _ in range(effort.times(CONVERSATIONS)):
                await played.begin({**fast, **client}, tool=tool)
                for number in range(WARM_UP_TURNS + effort.times(TURNS)):
                    counts = number >= WARM_UP_TURNS
                    await played.play(fast, "turn", counts=counts)
                    for _ in range(2 if tool else 1):
                        await played.play(client, "turn", counts=counts)
                await played.begin(others, tool=tool)
                await played.play(others, "turn")
    return played, [*always, *([] if tool else [CLIENT]), *others]


def times_as_long(
    times: dict[str, list[float]], bounds: Mapping[str, Bound] | None = None, mine: str = OURS
) -> list[Figure]:
    """Return the ratio to our time for contenders that start a process for each run."""
    group = Group(f"Times as long as {mine}", "times")
    return [
        group.figure(name, ratios_of_neighbours(times[name], times[mine]), (bounds or {}).get(name))
        for name in (QUERY, PEER)
        if name in times
    ]


async def measure_first(effort: Effort) -> list[Figure]:
    """Compare the first run in a Python process that has imported everything and started nothing."""
    played = Rounds()
    names = (PLAIN, OURS, QUERY, PEER)
    async with arena(effort) as place:
        for _ in range(effort.times(FIRST_RUNS)):
            async with place.contenders(*names) as workers:
                await played.play(workers, "run")
    times = played.ordered(played.milliseconds, names)
    return [*Group("First run of a process").figures(times, PLAIN), *times_as_long(times)]


async def measure_independent(effort: Effort) -> list[Figure]:
    played = Rounds()
    async with arena(effort) as place, place.contenders(PLAIN, OURS) as fast, place.contenders(QUERY, PEER) as slow:
        for number in range(-2, effort.times(INDEPENDENT, INDEPENDENT_PER_QUERY)):
            await played.play(fast, "run", counts=number >= 0)
            if number % INDEPENDENT_PER_QUERY == 0:
                await played.play(slow, "run")
    times = played.ordered(played.milliseconds, (PLAIN, OURS, QUERY, PEER))
    group = Group("Independent run")
    # MSG-52
    return [*group.figures(times, PLAIN), *times_as_long(times, {QUERY: Bound(8.0, least=True)})]


async def measure_history(effort: Effort) -> list[Figure]:
    figures: list[Figure] = []
    async with arena(effort) as place, place.contenders(PLAIN, OURS, PEER) as workers:
        for messages in HISTORIES[: effort.times(len(HISTORIES))]:
            over, on = await histories(effort, workers, messages)
            for title, played in (("taken over from elsewhere", over), ("gone on with", on)):
                times = played.ordered(played.milliseconds, workers)
                figures += Group(f"History of {messages} messages, {title}").figures(times, PLAIN)
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
    async with arena(effort) as place, place.contenders(PLAIN, OURS) as workers:
        for number in range(-2, effort.times(STREAMS)):
            await few.play(workers, "stream", counts=number >= 0, words=FEW_WORDS)
            await many.play(workers, "stream", counts=number >= 0, words=MANY_WORDS)
    first = few.ordered(few.first, workers)
    work = {name: _per_hundred(few.processor[name], many.processor[name]) for name in workers}
    own = [mine - floor for mine, floor in zip(work[OURS], work[PLAIN], strict=True)]
    return [
        *Group("Time to the first streamed word").figures(first, PLAIN),
        *Group("Processor time of the Python process for 100 deltas").figures(work, PLAIN),
        Group("Processor time for 100 deltas, without that for AnthropicModel").figure(OURS, own, Bound(1.0)),
    ]


def _per_hundred(few: Sequence[float], many: Sequence[float]) -> list[float]:
    hundreds = (MANY_WORDS - FEW_WORDS) / 100
    return [(more - less) / hundreds for less, more in zip(few, many, strict=True)]


async def measure_bytes(effort: Effort) -> list[Figure]:
    figures: list[Figure] = []
    async with arena(effort) as place, place.contenders(PLAIN, OURS, PEER) as workers:
        for kind, prompt in PROMPTS.items():
            sizes = {name: [await request_bytes(place, worker, prompt)] for name, worker in workers.items()}
            figures += Group(f"Bytes of the requests for a run, {kind} prompt", "B").figures(sizes, PLAIN)
            more = sizes[OURS][0] - TIMES_BYTES * sizes[PLAIN][0]
            title = f"Bytes beyond {TIMES_BYTES} times those of AnthropicModel, {kind} prompt"
            figures.append(Group(title, "B").figure(OURS, [more], Bound(600)))
    return figures


async def request_bytes(place: Arena, worker: LineProcess, prompt: str) -> float:
    await worker.order("run")
    await place.sizes()
    await worker.order("run", prompt=prompt)
    return float(sum(await place.sizes()))


SUITES = (
    Suite("text", "Warm runs without tools, and their processor time in the Python process", measure_text),
    Suite("tool", "Warm runs with one tool call", measure_tool),
    Suite("first", "The first run of a process", measure_first),
    Suite("independent", "Runs without a conversation", measure_independent),
    Suite("stream", "Streams: the first word, and the Python process's work for each", measure_stream),
    Suite("bytes", "Bytes that the API receives", measure_bytes),
    Suite("history", f"Conversations of {HISTORIES[0]} to {HISTORIES[-1]} messages", measure_history),
)
