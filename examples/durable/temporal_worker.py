"""A worker with Temporal: `python temporal_worker.py`."""

import asyncio
import os
import signal
from datetime import timedelta

from temporalio import workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy
from temporalio.worker import Worker
from temporalio.workflow import ActivityConfig

# Workflow code runs in a sandbox that loads each module again, except those that are passed through.
with workflow.unsafe.imports_passed_through():
    from agent import support_agent
    from pydantic_ai import DeferredToolRequests, DeferredToolResults
    from pydantic_ai.durable_exec.temporal import PydanticAIPlugin, TemporalDurability

agent = support_agent(
    TemporalDurability(
        activity_config=ActivityConfig(
            start_to_close_timeout=timedelta(minutes=10),
            # Heartbeat timeout: then another worker continues a dead worker's work.
            heartbeat_timeout=timedelta(seconds=30),
            # Unlimited by default; requests that the API rejects are not retried.
            retry_policy=RetryPolicy(maximum_attempts=5),
        )
    )
)


@workflow.defn(name="answer")
class Answer:
    """Answer a customer."""

    __pydantic_ai_agents__ = [agent]

    def __init__(self) -> None:
        self._to_approve: list[str] = []
        self._decisions: list[bool] = []

    @workflow.query
    def to_approve(self) -> list[str]:
        """Return the calls that wait for an approval."""
        return self._to_approve

    @workflow.signal
    def decide(self, approved: bool) -> None:
        """Approve or deny them."""
        self._decisions.append(approved)

    @workflow.run
    async def run(self, question: str) -> str:
        """Return the answer."""
        result = await agent.run(question)
        while isinstance(result.output, DeferredToolRequests):
            calls = result.output.approvals
            self._to_approve = [f"{call.tool_name} {call.args_as_json_str()}" for call in calls]
            await workflow.wait_condition(lambda: bool(self._decisions))
            self._to_approve = []
            approved = self._decisions.pop(0)
            decisions = DeferredToolResults(approvals={call.tool_call_id: approved for call in calls})
            result = await agent.run(message_history=result.all_messages(), deferred_tool_results=decisions)
        return result.output


async def main() -> None:
    """Answer questions until a signal stops this process."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    client = await Client.connect(os.environ.get("TEMPORAL_ADDRESS", "127.0.0.1:7233"), plugins=[PydanticAIPlugin()])
    async with Worker(client, task_queue="questions", workflows=[Answer], max_concurrent_activities=16):
        print("ready", flush=True)
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(main())
