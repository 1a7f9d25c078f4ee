"""One contender in a process of its own, controlled by lines of JSON.

    python scripts/bench/worker.py CONTENDER POOL

Prints `{"milliseconds": …}` after all imports and setup, and for each line of input a line with its duration and the
processor time of this process (`processor`), both in milliseconds. Ends at the end of the input.
"""

import asyncio
import json
import sys
import time
from typing import Any

from contenders import PROMPT, contender


async def act(one: Any, order: dict[str, Any]) -> dict[str, float]:
    """Run a command; a command that does not time itself is timed here."""
    match order["do"]:
        case "begin":
            await one.begin(order["messages"], tool=order["tool"])
        case "turn":
            await one.turn()
        case "run":
            await one.run(order.get("prompt", PROMPT))
        case "many":
            await asyncio.gather(*(one.run(PROMPT) for _ in range(order["at_once"])))
        case "stream":
            return {"first": await one.first_token(order["words"])}
        case unknown:
            raise ValueError(f"no order: {unknown}")
    return {}


async def main(name: str, pool: int) -> None:
    """Serve until the end of the input."""
    begun = time.perf_counter()
    loop = asyncio.get_running_loop()
    async with contender(name, pool) as one:
        tell(begun, 0.0, {})
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            begun, worked = time.perf_counter(), time.process_time()
            found = await act(one, json.loads(line))
            tell(begun, worked, found)


def tell(begun: float, worked: float, found: dict[str, float]) -> None:
    """Print the measured times."""
    took = (time.perf_counter() - begun) * 1_000
    processor = (time.process_time() - worked) * 1_000
    print(json.dumps({"milliseconds": took, "processor": processor, **found}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
