"""A worker with pgtask: `python pgtask_worker.py`."""

import asyncio
import os
import signal
import time

from agent import may_pass, support_agent
from pgtask import Client, NonRetryableError, Task, TaskRegistry, Worker
from pydantic_ai import DeferredToolRequests, DeferredToolResults
from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai_harness.pgtask import PGTaskDurability

agent = support_agent(PGTaskDurability())
tasks = TaskRegistry("questions")


@tasks.task("answer")
async def answer(task: Task, question: str) -> str:
    """Answer a customer."""
    times = 0
    try:
        result = await agent.run(question)
        while isinstance(result.output, DeferredToolRequests):
            approved = await task.wait_for_signal("wait", "decision", occurrence=times, signal_occurrence=times)
            times += 1
            calls = result.output.approvals
            decisions = DeferredToolResults(approvals={call.tool_call_id: approved is True for call in calls})
            result = await agent.run(message_history=result.all_messages(), deferred_tool_results=decisions)
    except ModelAPIError as error:
        if may_pass(error):
            raise
        raise NonRetryableError(str(error)) from error
    return result.output


async def main() -> None:
    """Answer questions until a signal stops this process."""
    database = os.environ.get("DATABASE", "postgresql://localhost/support")
    await (await Client.connect(database)).migrate()
    # A dead worker's work continues after `lease_duration`.
    worker = Worker(database, tasks, concurrency=16, lease_duration=30)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, worker.shutdown)
    print("ready", flush=True)
    await worker.run()


if __name__ == "__main__":
    asyncio.run(main())
    time.sleep(1)  # pgtask 0.4.0 has no close(): an interpreter that ends while its threads work crashes (SIGSEGV)
