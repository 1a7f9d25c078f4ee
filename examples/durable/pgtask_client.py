"""A client for pgtask, as in a web application; it needs neither the agent nor Claude Code.

python pgtask_client.py ask ID QUESTION            submit a question
python pgtask_client.py pending ID                 wait until an approval is needed
python pgtask_client.py decide ID yes|no [NUMBER]  approve or deny it; NUMBER is 1 for the second approval
python pgtask_client.py answer ID                  wait for the answer, and print it
"""

import asyncio
import os
import sys
import time

from pgtask import Client, EnqueueRequest


async def main(command: str, name: str, *rest: str) -> None:
    """Run a command."""
    client = await Client.connect(os.environ.get("DATABASE", "postgresql://localhost/support"))
    # A second request with the same key returns the first one's task.
    request: EnqueueRequest[str] = EnqueueRequest("answer", rest[0] if rest else "", "questions", idempotency_key=name)
    task = await client.enqueue(request)
    match command, rest:
        case "ask", [_question]:
            pass
        case "pending", []:
            async with asyncio.timeout(300):
                while (result := await task.inspect()) is None or result.state in ("pending", "running"):  # noqa: ASYNC110  # there is no event for it
                    await asyncio.sleep(0.5)
            print(result.state)
        case "decide", ["yes" | "no" as decision, *number]:
            await task.signal("decision", decision == "yes", int(number[0]) if number else 0)
        case "answer", []:
            result = await task.result()
            if result is None or result.state != "succeeded":
                raise RuntimeError(f"no answer: {result}")
            print(result.result)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
    time.sleep(1)  # pgtask 0.4.0 has no close(): an interpreter that ends while its threads work crashes (SIGSEGV)
