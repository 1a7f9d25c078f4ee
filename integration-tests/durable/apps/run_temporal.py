"""Run all cases, each in a Temporal workflow on the server in `TEMPORAL_ADDRESS`; print the results as JSON.

Another case is observed from outside: the workflow's subscribers get the events.
"""

import asyncio
import json
import os
import time
from typing import Any

from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    from cases import CASES, make_agent, recorder, run_case
    from pydantic_ai.durable_exec.temporal import AgentEventStream, PydanticAIPlugin, TemporalDurability

AGENTS = {name: make_agent(case, TemporalDurability()) for name, case in CASES.items()}
STREAMED = {
    name: make_agent(case, TemporalDurability(event_stream_handler=recorder(name)), suffix="-streamed")
    for name, case in CASES.items()
}
WATCHED = make_agent(CASES["text"], TemporalDurability(event_stream_topic="events"), suffix="-watched")


@workflow.defn(name="run")
class Run:
    """Runs a case."""

    __pydantic_ai_agents__ = [*AGENTS.values(), *STREAMED.values()]

    @workflow.run
    async def run(self, name: str, streamed: bool) -> Any:
        """Return the result."""
        return await run_case((STREAMED if streamed else AGENTS)[name], CASES[name])


@workflow.defn(name="watched")
class Watched:
    """Runs the case with the long text, for observers."""

    __pydantic_ai_agents__ = [WATCHED]

    @workflow.init
    def __init__(self) -> None:
        self._events = AgentEventStream()

    @workflow.run
    async def run(self) -> Any:
        """Return the result."""
        async with self._events:
            return await run_case(WATCHED, CASES["text"])


async def watch(client: Client) -> list[tuple[str, float]]:
    """Return the events' kinds and times."""
    durability = TemporalDurability[str].from_agent(WATCHED)
    assert durability is not None
    handle = await client.start_workflow(Watched.run, id="watched", task_queue="cases")
    async with durability.stream_agent_events(client, handle) as events:
        arrivals = [(event.event_kind, time.time()) async for event in events]
    await handle.result()
    return arrivals


async def main() -> None:
    """Run them, plain and streamed."""
    client = await Client.connect(os.environ["TEMPORAL_ADDRESS"], plugins=[PydanticAIPlugin()])
    outcomes: dict[str, Any] = {}
    async with Worker(client, task_queue="cases", workflows=[Run, Watched]):
        for name in CASES:
            for streamed, key in ((False, name), (True, f"{name}-streamed")):
                outcomes[key] = await client.execute_workflow(
                    "run", args=[name, streamed], id=key, task_queue="cases", result_type=dict[str, Any]
                )
        watched = await watch(client)
    print(json.dumps({"outcomes": outcomes, "watched": watched}))


if __name__ == "__main__":
    asyncio.run(main())
