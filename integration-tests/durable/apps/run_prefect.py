"""Run all cases, each in a Prefect flow on the server in `PREFECT_API_URL`; print the results as JSON."""

import asyncio
import json
from typing import Any

from cases import CASES, make_agent, recorder, run_case
from prefect import flow
from pydantic_ai.durable_exec.prefect import PrefectDurability


@flow
async def run(name: str, streamed: bool) -> Any:
    """Run a case."""
    handler = recorder(name) if streamed else None
    agent = make_agent(CASES[name], PrefectDurability(event_stream_handler=handler))
    return await run_case(agent, CASES[name])


async def main() -> None:
    """Run them, plain and streamed."""
    outcomes: dict[str, Any] = {}
    for name in CASES:
        outcomes[name] = await run(name, False)
        outcomes[f"{name}-streamed"] = await run(name, True)
    print(json.dumps(outcomes))


if __name__ == "__main__":
    asyncio.run(main())
