"""A client for Absurd, as in a web application; it needs neither the agent nor Claude Code.

python absurd_client.py ask ID QUESTION            submit a question
python absurd_client.py pending ID [NUMBER]        wait until an approval is needed, and print the calls
python absurd_client.py decide ID yes|no [NUMBER]  approve or deny it; NUMBER is 1 for the second approval
python absurd_client.py answer ID                  wait for the answer, and print it
"""

import asyncio
import os
import sys
from typing import Any

from absurd_sdk import AsyncAbsurd, RetryStrategy
from psycopg import AsyncConnection

_RETRIES = RetryStrategy(kind="exponential", base_seconds=1, factor=2)


async def main(command: str, name: str, *rest: str) -> None:
    """Run a command."""
    absurd = AsyncAbsurd(queue_name="questions")
    match command, rest:
        case "ask", [question]:
            await _spawn(absurd, name, question)
        case "pending", [*number]:
            async with asyncio.timeout(300):
                print(*await _wait_for_event(f"{name}: to approve {number[0] if number else 0}"), sep="\n")
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


async def _wait_for_event(name: str) -> Any:
    """Return an event's payload. The library waits for events in tasks alone, so this reads the queue's table."""
    query = "SELECT payload FROM absurd.e_questions WHERE event_name = %s"
    url = os.environ.get("ABSURD_DATABASE_URL", "postgresql://localhost/absurd")
    async with await AsyncConnection.connect(url, autocommit=True) as connection:
        while (row := await (await connection.execute(query, [name])).fetchone()) is None:  # noqa: ASYNC110  # see above
            await asyncio.sleep(0.5)
    return row[0]


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
