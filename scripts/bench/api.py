"""The scripted API in a process of its own, so that its work is in nobody's figures.

    python scripts/bench/api.py

Prints its environment as a line of JSON. Then each line on standard input is answered with a line of JSON: the bytes
of each request since the last one. Ends when the input does.

Answers: a call of the tool, if there is one that was not called yet; `Count to N.` with so many words, each of which is
a delta when streamed; and everything else with "Hello."
"""

import json
import re
import sys
from typing import Any

from cc_loopback import LoopbackServer

# The loopback API streams a block of text in at most 64 pieces.
WORDS_PER_BLOCK = 50


def respond(body: dict[str, Any]) -> str | list[dict[str, Any]]:
    """Return what the model says."""
    content = body["messages"][-1]["content"]
    tools: list[dict[str, Any]] = body.get("tools", [])
    if any(tool.get("name") == "look_up" for tool in tools) and content[-1]["type"] != "tool_result":
        return [{"type": "tool_use", "name": "look_up", "input": {"word": "hello"}}]
    wanted = re.search(r"Count to (\d+)\.", json.dumps(content))
    return counted(int(wanted[1])) if wanted else "Hello."


def counted(count: int) -> list[dict[str, Any]]:
    """Return so many words, in blocks that are streamed word by word."""
    words = [f"word{number} " for number in range(count)]
    return [
        {"type": "text", "text": "".join(words[start : start + WORDS_PER_BLOCK])}
        for start in range(0, count, WORDS_PER_BLOCK)
    ]


def main() -> None:
    """Serve until the input ends."""
    with LoopbackServer(respond) as api:
        print(json.dumps({**api.env(), "BENCH_API_URL": api.url}), flush=True)
        for _ in sys.stdin:
            sizes = [len(call.raw) for call in api.calls if call.method == "POST"]
            # What was recorded is of no use any more, and would only grow.
            api.calls.clear()
            api.requests.clear()
            print(json.dumps(sizes), flush=True)


if __name__ == "__main__":
    main()
