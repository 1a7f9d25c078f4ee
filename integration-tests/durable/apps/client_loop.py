"""Run a client script's commands from examples/, one for each line on stdin, in the same interpreter.

A line is a JSON list of words; the answer is a JSON object with the output, or the error.
"""

import asyncio
import inspect
import io
import json
import runpy
import sys
import traceback
from collections.abc import Awaitable
from contextlib import redirect_stdout


def main() -> None:
    """Run until stdin ends."""
    run = runpy.run_path(sys.argv[1])["main"]
    for line in sys.stdin:
        printed = io.StringIO()
        try:
            with redirect_stdout(printed):
                if inspect.isawaitable(doing := run(*json.loads(line))):
                    asyncio.run(_wait_for(doing))
            answer = {"printed": printed.getvalue()}
        except Exception:
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), flush=True)


async def _wait_for(doing: Awaitable[None]) -> None:
    await doing


if __name__ == "__main__":
    main()
