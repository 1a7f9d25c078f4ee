"""One contender in a process of its own, told by lines of JSON what to do next.

    python scripts/bench/worker.py CONTENDER POOL

Prints `{"milliseconds": …}` when all is imported and made, and for each line of input such a line with how long it took
and how long this process worked for it (`processor`, in milliseconds). Ends when the input does.
"""

import asyncio
import json
import sys
import time
from typing import Any

from contenders import PROMPT, contender


async def act(one: Any, order: dict[str, Any]) -> dict[str, float]:
    """Carry out an order; what is not timed by itself is timed from outside."""
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
    """Serve until the input ends."""
    begun = time.perf_counter()
    loop = asyncio.get_running_loop()
    async with contender(name, pool) as one:
        tell(begun, 0.0, {})
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            begun, worked = time.perf_counter(), time.process_time()
            found = await act(one, json.loads(line))
            tell(begun, worked, found)


def tell(begun: float, worked: float, found: dict[str, float]) -> None:
    """Print what it took."""
    took = (time.perf_counter() - begun) * 1_000
    processor = (time.process_time() - worked) * 1_000
    print(json.dumps({"milliseconds": took, "processor": processor, **found}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
