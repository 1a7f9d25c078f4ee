"""How long it takes to convert 10,000 results with five messages each, and how that compares to validation alone.

    python scripts/bench/convert.py [--enough]

Prints one JSON object. Times are of the processor, so that what else the computer does counts little; of several rounds
the best counts, and the kinds take turns. Exits with 1 if a bound is missed: 1 s in all, 1.5 times validation. With
`--enough` no further round follows one that keeps the bounds.
"""

import gc
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from cc_convert import convert_sdk_messages_to_cli_response
from cc_types import CLIResponse

Turn: TypeAlias = list[dict[str, Any]]

LOG = Path(__file__).parents[2] / "packages" / "cc-convert" / "tests" / "logs" / "tool_call.jsonl"
RESULTS = 10_000
DISTINCT = 500
ROUNDS = 3
MOST_SECONDS = 1.0
MOST_TIMES_VALIDATION = 1.5


def recorded_turns() -> list[Turn]:
    """The same turn again and again, each time in objects of its own."""
    lines = LOG.read_text("utf-8").splitlines()[-5:]
    return [[json.loads(line) for line in lines] for _ in range(DISTINCT)]


def without_text(turns: list[Turn]) -> list[Turn]:
    """The turns with results that leave the text to the assistants' messages, which takes longest."""
    return [[*turn[:-1], {**turn[-1], "result": None}] for turn in turns]


def seconds(work: Callable[[Any], object], over: Sequence[object]) -> float:
    """The time for `RESULTS` calls."""
    gc.collect()
    started = time.process_time()
    for _ in range(RESULTS // len(over)):
        for one in over:
            work(one)
    return time.process_time() - started


def main() -> int:
    """Measure, print, compare."""
    turns = recorded_turns()
    tasks: dict[str, tuple[Callable[[Any], object], Sequence[object]]] = {
        "validation": (CLIResponse.model_validate, [turn[-1] for turn in turns]),
        "conversion": (convert_sdk_messages_to_cli_response, turns),
        "conversion, text from the messages": (convert_sdk_messages_to_cli_response, without_text(turns)),
    }
    best = dict.fromkeys(tasks, float("inf"))
    ratio, missed = float("inf"), True
    for _ in range(ROUNDS):
        for name, (work, over) in tasks.items():
            best[name] = min(best[name], seconds(work, over))
        ratio = best["conversion"] / best["validation"]
        missed = best["conversion"] > MOST_SECONDS or ratio > MOST_TIMES_VALIDATION
        if "--enough" in sys.argv and not missed:
            break
    print(json.dumps({"results": RESULTS, "seconds": best, "times validation": ratio}))
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
