"""A client for Temporal, as in a web application; it needs neither the agent nor Claude Code.

python temporal_client.py ask ID QUESTION      submit a question
python temporal_client.py pending ID           wait until an approval is needed, and print the calls
python temporal_client.py decide ID yes|no     approve or deny it
python temporal_client.py answer ID            wait for the answer, and print it
"""

import asyncio
import os
import sys

from temporalio.client import Client


async def main(command: str, name: str, *rest: str) -> None:
    """Run a command."""
    client = await Client.connect(os.environ.get("TEMPORAL_ADDRESS", "127.0.0.1:7233"))
    workflow = client.get_workflow_handle(name, result_type=str)
    match command, rest:
        case "ask", [question]:
            await client.start_workflow("answer", question, id=name, task_queue="questions")
        case "pending", []:
            async with asyncio.timeout(300):
                while not (calls := await workflow.query("to_approve", result_type=list[str])):  # noqa: ASYNC110  # there is no event for it
                    await asyncio.sleep(0.5)
            print(*calls, sep="\n")
        case "decide", ["yes" | "no" as decision]:
            await workflow.signal("decide", decision == "yes")
        case "answer", []:
            print(await workflow.result())
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
