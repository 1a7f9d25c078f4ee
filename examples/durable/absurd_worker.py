"""A worker with Absurd: `python absurd_worker.py`."""

import asyncio
import signal
from contextlib import suppress
from typing import Any

from absurd_sdk import AsyncAbsurd, AsyncTaskContext, JsonValue
from agent import may_pass, support_agent
from pydantic_ai import DeferredToolRequests, DeferredToolResults
from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai_harness.absurd import AbsurdDurability

# Seconds after which a dead worker's work continues.
CLAIM_SECONDS = 30

agent = support_agent(AbsurdDurability())
absurd = AsyncAbsurd(queue_name="questions")


@absurd.register_task("answer")
async def answer(params: Any, context: AsyncTaskContext) -> Any:
    """Answer a customer; return the answer, or the error of a rejected request, which is not worth a retry."""
    beating = asyncio.create_task(keep_claim(context))
    times = 0
    try:
        result = await agent.run(params["question"])
        while isinstance(result.output, DeferredToolRequests):
            calls = result.output.approvals
            to_approve: JsonValue = [f"{call.tool_name} {call.args_as_json_str()}" for call in calls]
            await context.emit_event(f"{params['name']}: to approve {times}", to_approve)
            approved = await context.await_event(f"{params['name']}: decision {times}")
            times += 1
            decisions = DeferredToolResults(approvals={call.tool_call_id: approved is True for call in calls})
            result = await agent.run(message_history=result.all_messages(), deferred_tool_results=decisions)
    except ModelAPIError as error:
        if may_pass(error):
            raise
        return {"error": str(error)}
    finally:
        beating.cancel()
    return {"answer": result.output}


async def keep_claim(context: AsyncTaskContext) -> None:
    """Extend the claim again and again, since a step can take longer."""
    while True:
        await asyncio.sleep(CLAIM_SECONDS / 3)
        await context.heartbeat(CLAIM_SECONDS)


async def main() -> None:
    """Answer questions until a signal stops this process."""
    await absurd.create_queue()
    worker = asyncio.create_task(absurd.start_worker(claim_timeout=CLAIM_SECONDS, concurrency=16))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, worker.cancel)
    print("ready", flush=True)
    with suppress(asyncio.CancelledError):
        await worker
    await absurd.close()


if __name__ == "__main__":
    asyncio.run(main())
