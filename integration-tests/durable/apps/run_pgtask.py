"""Run all cases, each in a pgtask task on the database in `DATABASE`; print the results as JSON."""

import asyncio
import json
import os
from typing import Any

from cases import CASES, make_agent, recorder, run_case
from pgtask import Client, Task, TaskRegistry, Worker
from pydantic_ai_harness.pgtask import PGTaskDurability

AGENTS = {name: make_agent(case, PGTaskDurability()) for name, case in CASES.items()}
STREAMED = {
    name: make_agent(case, PGTaskDurability(event_stream_handler=recorder(name)), suffix="-streamed")
    for name, case in CASES.items()
}
tasks = TaskRegistry("cases")


@tasks.task("run")
async def run(_task: Task, arguments: dict[str, Any]) -> Any:
    """Run a case."""
    name = arguments["name"]
    return await run_case((STREAMED if arguments["streamed"] else AGENTS)[name], CASES[name])


async def main() -> None:
    """Run them, plain and streamed."""
    outcomes: dict[str, Any] = {}
    client = await Client.connect(os.environ["DATABASE"])
    await client.migrate()
    worker = Worker(os.environ["DATABASE"], tasks)
    working = asyncio.create_task(worker.run())
    for name in CASES:
        for streamed, key in ((False, name), (True, f"{name}-streamed")):
            task = await client.enqueue(run.request({"name": name, "streamed": streamed}, max_attempts=1))
            outcome = await task.result()
            assert outcome is not None and outcome.state == "succeeded", outcome
            outcomes[key] = outcome.result
    worker.shutdown()
    await working
    print(json.dumps(outcomes))


if __name__ == "__main__":
    asyncio.run(main())
