"""A worker with Prefect: `python prefect_worker.py`."""

import os
from typing import Any

from agent import may_pass, support_agent
from prefect import Task, asuspend_flow_run, flow
from prefect.client.schemas.objects import State, TaskRun
from prefect.input import RunInput
from pydantic_ai import DeferredToolRequests, DeferredToolResults
from pydantic_ai.durable_exec.prefect import PrefectDurability, TaskConfig


class Approval(RunInput):
    """Decision about an approval."""

    approved: bool


async def failure_may_pass(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    """Return whether Prefect has to retry."""
    return may_pass(await state.aresult(raise_on_failure=False))


@flow(name="answer", persist_result=True)
async def answer(question: str) -> str:
    """Answer a customer."""
    # Created here and not above: Prefect sends this function, with all globals, to a process for each run.
    retries = TaskConfig(retries=4, retry_delay_seconds=[1, 2, 4, 8], retry_condition_fn=failure_may_pass)
    agent = support_agent(PrefectDurability(model_task_config=retries))
    result = await agent.run(question)
    times = 0
    while isinstance(result.output, DeferredToolRequests):
        times += 1
        # The process ends here. Any worker that continues reads the finished results from the shared folder.
        approval = await asuspend_flow_run(Approval, timeout=7 * 24 * 60 * 60, key=f"approval-{times}")
        calls = result.output.approvals
        decisions = DeferredToolResults(approvals={call.tool_call_id: approval.approved for call in calls})
        result = await agent.run(message_history=result.all_messages(), deferred_tool_results=decisions)
    return result.output


if __name__ == "__main__":
    # Each run has a process, with its own Claude Code. No pause at the end: other workers serve the flow, too.
    limit = int(os.environ.get("CLAUDE_PROCESSES", "4"))
    answer.serve(name="questions", limit=limit, pause_on_shutdown=False)
