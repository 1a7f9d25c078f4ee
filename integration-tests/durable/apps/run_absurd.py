"""Run all cases, each in an Absurd task on the database in `ABSURD_DATABASE_URL`; print the results as JSON."""

import asyncio
import json
from contextlib import suppress
from typing import Any

from absurd_sdk import AsyncAbsurd, AsyncTaskContext
from cases import CASES, make_agent, recorder, run_case
from pydantic_ai_harness.absurd import AbsurdDurability

AGENTS = {name: make_agent(case, AbsurdDurability()) for name, case in CASES.items()}
STREAMED = {
    name: make_agent(case, AbsurdDurability(event_stream_handler=recorder(name)), suffix="-streamed")
    for name, case in CASES.items()
}
absurd = AsyncAbsurd(queue_name="cases")


@absurd.register_task("run")
async def run(params: Any, _context: AsyncTaskContext) -> Any:
    """Run a case."""
    name = params["name"]
    return await run_case((STREAMED if params["streamed"] else AGENTS)[name], CASES[name])


async def main() -> None:
    """Run them, plain and streamed."""
    outcomes: dict[str, Any] = {}
    await absurd.create_queue()
    working = asyncio.create_task(absurd.start_worker())
    client = AsyncAbsurd(queue_name="cases")
    for name in CASES:
        for streamed, key in ((False, name), (True, f"{name}-streamed")):
            arguments = {"name": name, "streamed": streamed}
            task = await client.spawn("run", arguments, queue="cases", max_attempts=1)
            outcome = await client.await_task_result(task["task_id"])
            assert outcome.state == "completed", outcome
            outcomes[key] = outcome.result
    working.cancel()
    with suppress(asyncio.CancelledError):
        await working
    await client.close()
    await absurd.close()
    print(json.dumps(outcomes))


if __name__ == "__main__":
    asyncio.run(main())
