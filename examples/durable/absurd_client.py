"""A client for Absurd, as in a web application; it needs neither the agent nor Claude Code.

python absurd_client.py ask ID QUESTION            submit a question
python absurd_client.py pending ID                 wait until an approval is needed
python absurd_client.py decide ID yes|no [NUMBER]  approve or deny it; NUMBER is 1 for the second approval
python absurd_client.py answer ID                  wait for the answer, and print it
"""

import asyncio
import sys
from typing import Any

from absurd_sdk import AsyncAbsurd, RetryStrategy

_RETRIES = RetryStrategy(kind="exponential", base_seconds=1, factor=2)


async def main(command: str, name: str, *rest: str) -> None:
    """Run a command."""
    absurd = AsyncAbsurd(queue_name="questions")
    match command, rest:
        case "ask", [question]:
            await _spawn(absurd, name, question)
        case "pending", []:
            task = await _spawn(absurd, name)
            async with asyncio.timeout(300):
                while (state := await _state(absurd, task)) in (None, "pending", "running"):  # noqa: ASYNC110  # there is no event for it
                    await asyncio.sleep(0.5)
            print(state)
        case "decide", ["yes" | "no" as decision, *number]:
            await absurd.emit_event(f"{name}: decision {number[0] if number else 0}", decision == "yes")
        case "answer", []:
            outcome = await absurd.await_task_result(await _spawn(absurd, name))
            result: Any = outcome.result
            if not result or "error" in result:
                raise RuntimeError(f"no answer: {outcome}")
            print(result["answer"])
        case _:
            sys.exit(__doc__)
    await absurd.close()


async def _state(absurd: AsyncAbsurd, task: str) -> str | None:
    snapshot = await absurd.fetch_task_result(task)
    return None if snapshot is None else snapshot.state


async def _spawn(absurd: AsyncAbsurd, name: str, question: str = "") -> str:
    """Return the task's id; a second call with the same name creates no other task."""
    task = await absurd.spawn(
        "answer",
        {"name": name, "question": question},
        max_attempts=5,
        retry_strategy=_RETRIES,
        queue="questions",
        idempotency_key=name,
    )
    return task["task_id"]


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
