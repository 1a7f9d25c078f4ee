"""A worker with DBOS: `python dbos_worker.py NAME`, with another name for each worker."""

import os
import signal
import sys
from threading import Event
from typing import cast

from agent import may_pass, support_agent
from dbos import DBOS, StepOptions
from pydantic_ai import DeferredToolRequests, DeferredToolResults
from pydantic_ai.durable_exec.dbos import DBOSDurability, StepConfig

# pydantic-ai passes this to DBOS unchanged, but the type there lacks `should_retry`.
retries = cast(StepConfig, StepOptions(retries_allowed=True, max_attempts=5, should_retry=may_pass))
# Model requests are steps by default; tools have to declare it.
agent = support_agent(DBOSDurability(model_step_config=retries), as_step=DBOS.step())


@DBOS.workflow()
async def answer(question: str) -> str:
    """Answer a customer."""
    result = await agent.run(question)
    while isinstance(result.output, DeferredToolRequests):
        calls = result.output.approvals
        await DBOS.set_event_async("to approve", [f"{call.tool_name} {call.args_as_json_str()}" for call in calls])
        approved = await DBOS.recv_async("approval", timeout_seconds=7 * 24 * 60 * 60)
        decisions = DeferredToolResults(approvals={call.tool_call_id: approved is True for call in calls})
        result = await agent.run(message_history=result.all_messages(), deferred_tool_results=decisions)
    return result.output


def main() -> None:
    """Answer questions until a signal stops this process."""
    stop = Event()

    def on_signal(*_: object) -> None:
        stop.set()

    signal.signal(signal.SIGINT, on_signal)
    signal.signal(signal.SIGTERM, on_signal)
    DBOS(
        config={
            "name": "support",
            "system_database_url": os.environ.get("DATABASE", "sqlite:///support.sqlite"),
            "executor_id": sys.argv[1],
            # A worker takes only work with the same version: change it with the workflow and the tools.
            "application_version": "1",
        }
    )
    DBOS.launch()
    DBOS.register_queue("questions", worker_concurrency=16)
    print(f"{sys.argv[1]} is ready", flush=True)
    stop.wait()
    DBOS.destroy()


if __name__ == "__main__":
    main()
