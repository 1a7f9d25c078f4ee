"""A client for Restate, as in a web application; it needs neither the agent nor Claude Code.

python restate_client.py ask ID QUESTION      submit a question
python restate_client.py pending ID           wait until an approval is needed, and print the calls
python restate_client.py decide ID yes|no     approve or deny it
python restate_client.py answer ID            wait for the answer, and print it
"""

import asyncio
import os
import sys
from typing import Any

import httpx2


async def main(command: str, name: str, *rest: str) -> None:
    """Run a command."""
    match command, rest:
        case "ask", [question]:
            await _call("POST", f"answer/{name}/run/send", question)
        case "pending", []:
            async with asyncio.timeout(300):
                while not (calls := await _call("POST", f"answer/{name}/to_approve")):  # noqa: ASYNC110  # there is no event for it
                    await asyncio.sleep(0.5)
            print(*calls, sep="\n")
        case "decide", ["yes" | "no" as decision]:
            await _call("POST", f"answer/{name}/decide", decision == "yes")
        case "answer", []:
            print(await _call("GET", f"restate/workflow/answer/{name}/attach"))
        case _:
            sys.exit(__doc__)


async def _call(method: str, path: str, body: object = None) -> Any:
    url = os.environ.get("RESTATE_INGRESS", "http://127.0.0.1:8080")
    async with httpx2.AsyncClient(timeout=None) as http:
        response = await http.request(method, f"{url}/{path}", json=body)
    if response.is_error:
        raise RuntimeError(response.text)
    return response.json() if response.content else None


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
