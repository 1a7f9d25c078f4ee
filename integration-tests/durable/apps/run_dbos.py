"""Run all cases, each in a DBOS workflow on the database in `DATABASE`; print the results as JSON."""

import asyncio
import json
import os
from typing import Any

from cases import CASES, make_agent, recorder, run_case
from dbos import DBOS
from pydantic_ai.durable_exec.dbos import DBOSDurability

AGENTS = {name: make_agent(case, DBOSDurability()) for name, case in CASES.items()}
STREAMED = {
    name: make_agent(case, DBOSDurability(event_stream_handler=recorder(name)), suffix="-streamed")
    for name, case in CASES.items()
}


@DBOS.workflow()
async def run(name: str, streamed: bool) -> Any:
    """Run a case."""
    return await run_case((STREAMED if streamed else AGENTS)[name], CASES[name])


async def main() -> None:
    """Run them, plain and streamed."""
    outcomes: dict[str, Any] = {}
    for name in CASES:
        outcomes[name] = await run(name, False)
        outcomes[f"{name}-streamed"] = await run(name, True)
    print(json.dumps(outcomes))


if __name__ == "__main__":
    DBOS(config={"name": "cases", "system_database_url": os.environ["DATABASE"], "console_log_level": "ERROR"})
    DBOS.launch()
    try:
        asyncio.run(main())
    finally:
        DBOS.destroy()
