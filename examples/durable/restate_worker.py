"""A worker with Restate: `python restate_worker.py`. Restate calls it over HTTP."""

import asyncio
import os
import socket
from datetime import timedelta
from functools import wraps
from typing import Any

import httpx2
from agent import ToolFunction, may_pass, provider, support_agent
from hypercorn.asyncio import serve  # pyright: ignore[reportUnknownVariableType]  # untyped in part
from hypercorn.config import Config
from pydantic_ai import DeferredToolRequests, DeferredToolResults, ModelResponse
from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.models.wrapper import WrapperModel
from restate import RunOptions, TerminalError, Workflow, WorkflowContext, WorkflowSharedContext, app
from restate.ext.pydantic import RestateAgent, restate_context

from cc_model import ClaudeCodeModel

# Restate stops a step that shows no progress for both times together, and repeats it.
SLOWEST_STEP = timedelta(minutes=10)


class LimitedRetries(WrapperModel):
    """Let Restate retry failed requests, but not those that the API rejects."""

    async def request(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """Request an answer; a rejection ends the question."""
        try:
            return await super().request(*args, **kwargs)
        except ModelAPIError as error:
            if may_pass(error):
                raise
            raise TerminalError(str(error)) from error


def as_step(tool: ToolFunction) -> ToolFunction:
    """Return the tool as a step: Restate stores the result. (`auto_wrap_tools` fails for approved calls.)"""

    @wraps(tool)
    async def step(*args: Any, **kwargs: Any) -> str:
        async def action() -> str:
            return await tool(*args, **kwargs)

        return await restate_context().run_typed(tool.__name__, action)

    return step


model = LimitedRetries(ClaudeCodeModel("sonnet", provider=provider))
retries = RunOptions[Any](max_attempts=5, initial_retry_interval=timedelta(seconds=1))
agent = RestateAgent(support_agent(model=model, as_step=as_step), run_options=retries)
answer = Workflow("answer", inactivity_timeout=SLOWEST_STEP, abort_timeout=SLOWEST_STEP)


@answer.main()
async def run(context: WorkflowContext, question: str) -> str:
    """Answer a customer."""
    # A repeated run has to take the same steps in the same order.
    with agent.parallel_tool_call_execution_mode("sequential"):
        result = await agent.run(question)
        while isinstance(result.output, DeferredToolRequests):
            calls = result.output.approvals
            context.set("to approve", [f"{call.tool_name} {call.args_as_json_str()}" for call in calls])
            context.set("decision", name := f"decision about {calls[0].tool_call_id}")
            approved = await context.promise(name, type_hint=bool).value()
            context.clear("to approve")
            decisions = DeferredToolResults(approvals={call.tool_call_id: approved for call in calls})
            result = await agent.run(message_history=result.all_messages(), deferred_tool_results=decisions)
    return result.output


@answer.handler()
async def to_approve(context: WorkflowSharedContext) -> list[str]:
    """Return the calls that wait for an approval."""
    return await context.get("to approve", type_hint=list[str]) or []


@answer.handler()
async def decide(context: WorkflowSharedContext, approved: bool) -> None:
    """Approve or deny them."""
    name = await context.get("decision", type_hint=str)
    await context.promise(str(name), type_hint=bool).resolve(approved)


async def main() -> None:
    """Answer questions until a signal stops this process."""
    address = os.environ.get("WORKER_ADDRESS", "127.0.0.1:9080")
    host, _, port = address.rpartition(":")
    # Several workers on one machine can share the address; those on several need a load balancer.
    listener = socket.create_server((host, int(port)), reuse_port=True)
    config = Config.from_mapping(bind=[f"fd://{listener.detach()}"])
    async with asyncio.TaskGroup() as group, httpx2.AsyncClient() as http:
        group.create_task(serve(app([answer]), config))
        admin = os.environ.get("RESTATE_ADMIN", "http://127.0.0.1:9070")
        response = await http.post(f"{admin}/deployments", json={"uri": f"http://{address}"})
        if response.is_error:
            raise RuntimeError(f"Restate does not register http://{address}: {response.text}")
        print("ready", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
