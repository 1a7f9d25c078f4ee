"""Measure the conversion of 10,000 results with five messages each, in comparison with validation alone.

Times are processor times, so that other programs count little; the variants alternate.
"""

import gc
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from cc_convert import convert_sdk_messages_to_cli_response
from cc_types import CLIResponse

from .harness import Bound, Effort, Figure, Group, Suite, ratios_of_neighbours

Turn: TypeAlias = list[dict[str, Any]]

LOG = Path(__file__).parents[2] / "packages" / "cc-convert" / "tests" / "logs" / "tool_call.jsonl"
RESULTS = 10_000
DISTINCT = 500
ROUNDS = 5

VALIDATION = "validation of the result alone"
CONVERSION = "cc-convert"
CONVERSION_OF_TEXT = "cc-convert, text from the messages"


def recorded_turns() -> list[Turn]:
    """Return the same turn many times, each with separate objects."""
    lines = LOG.read_text("utf-8").splitlines()[-5:]
    return [[json.loads(line) for line in lines] for _ in range(DISTINCT)]


def without_text(turns: list[Turn]) -> list[Turn]:
    """Return the turns with the text only in the assistants' messages, which takes longest."""
    return [[*turn[:-1], {**turn[-1], "result": None}] for turn in turns]


def seconds(work: Callable[[Any], object], over: Sequence[object], results: int) -> float:
    gc.collect()
    started = time.process_time()
    for _ in range(results // len(over)):
        for argument in over:
            work(argument)
    return time.process_time() - started


async def measure(effort: Effort) -> list[Figure]:
    turns = recorded_turns()
    tasks: dict[str, tuple[Callable[[Any], object], Sequence[object]]] = {
        VALIDATION: (CLIResponse.model_validate, [turn[-1] for turn in turns]),
        CONVERSION: (convert_sdk_messages_to_cli_response, turns),
        CONVERSION_OF_TEXT: (convert_sdk_messages_to_cli_response, without_text(turns)),
    }
    taken: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(effort.times(ROUNDS, 1)):
        for name, (work, over) in tasks.items():
            results = effort.times(RESULTS, DISTINCT)
            taken[name].append(seconds(work, over, results) * RESULTS / results)
    title = f"Convert {RESULTS:,} results of five messages"
    return [
        *Group(title, "s").figures(taken, VALIDATION, {CONVERSION: Bound(1.0)}),
        Group(f"{title}, in multiples of validation", "times").figure(
            CONVERSION, ratios_of_neighbours(taken[CONVERSION], taken[VALIDATION]), Bound(1.5)
        ),
    ]


SUITE = Suite("convert", "Messages of the SDK into results", measure)
