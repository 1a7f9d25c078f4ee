"""Measure runs at once, streams and request sizes, with and without Claude Code.

1 to 32 runs at once on the same provider; the time to the first streamed word, and the Python process's work for a
hundred words; the bytes that the API receives.
"""

from collections.abc import Sequence

from line_process import LineProcess

from .arena import OURS, PEER, PLAIN, QUERY, Arena, Rounds, arena
from .harness import Bound, Effort, Figure, Group, Suite

AT_ONCE = (1, 2, 4, 8, 16, 32)
# Each peer run is a process with 200 MB or more.
MOST_PROCESSES = 8
LOAD_ROUNDS = 8
POOL = 8

STREAMS = 30
FEW_WORDS, MANY_WORDS = 50, 250

TIMES_BYTES = 1.1
PROMPTS = {"short": "Hello?", "20 KB": "Hello? " * 3_000}


async def measure_concurrent(effort: Effort) -> list[Figure]:
    figures: list[Figure] = []
    async with arena(effort) as place, place.contenders(PLAIN, OURS, QUERY, PEER, pool=POOL) as workers:
        # Processes and connections start with the first runs, which is another benchmark.
        await Rounds().play({name: workers[name] for name in (PLAIN, OURS)}, "many", at_once=POOL)
        for at_once in AT_ONCE[: effort.times(len(AT_ONCE), 3)]:
            played = Rounds()
            chosen = {name: worker for name, worker in workers.items() if at_once <= _most(name)}
            for number in range(effort.times(LOAD_ROUNDS)):
                is_turn_of_slow = number % 4 == 0
                now = {name: worker for name, worker in chosen.items() if is_turn_of_slow or name in (PLAIN, OURS)}
                await played.play(now, "many", at_once=at_once)
            each = {name: [time / at_once for time in times] for name, times in played.milliseconds.items()}
            group = Group(f"{at_once} at once, time for each run")
            figures += group.figures(played.ordered(each, chosen), PLAIN)
    return figures


def _most(name: str) -> int:
    return MOST_PROCESSES if name in (QUERY, PEER) else max(AT_ONCE)


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
    Suite("concurrent", f"{AT_ONCE[0]} to {AT_ONCE[-1]} runs at once", measure_concurrent),
    Suite("stream", "Streams: the first word, and the Python process's work for each", measure_stream),
    Suite("bytes", "Bytes that the API receives", measure_bytes),
)
