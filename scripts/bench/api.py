"""The scripted API in a process of its own, so that its work is in nobody's figures.

    python scripts/bench/api.py

Prints its environment as a line of JSON. Then each line on standard input is answered with a line of JSON: the bytes
of each request since the last one. Ends when the input does.

Answers: a call of the tool, if there is one that was not called yet; `Count to N.` with so many words, each of which is
a delta when streamed; and everything else with "Hello." A peer that offers the model no tools asks in two prompts which
function it wants, and for files with the arguments; it gets both.
"""

import json
import re
import sys
from typing import Any

from cc_loopback import LoopbackServer

# The loopback API streams a block of text in at most 64 pieces.
WORDS_PER_BLOCK = 50


CALL = {"type": "tool_use", "name": "look_up", "input": {"word": "hello"}}
# How pydantic-ai-claude-code asks for a choice, and for a folder with a file for each argument.
CHOICE = "CHOICE: look_up"
ARGUMENTS = re.compile(r"mkdir -p ([^\s\\]*claude_data_structure_\w+)")


def respond(body: dict[str, Any]) -> str | list[dict[str, Any]]:
    """Return what the model says."""
    # With all its tools the CLI adds a message about the machine behind the prompt.
    content = [message["content"] for message in body["messages"] if message["role"] == "user"][-1]
    if content[-1]["type"] != "tool_result":
        # In the CLI's own loop the name has the server's in front.
        names = [str(tool.get("name")) for tool in body.get("tools", [])]
        if name := next((name for name in names if name.split("__")[-1] == CALL["name"]), None):
            return [{**CALL, "name": name}]
        prompt = json.dumps(content)
        if CHOICE in prompt:
            return CHOICE
        if folder := ARGUMENTS.search(prompt):
            command = f"mkdir -p {folder[1]} && printf hello > {folder[1]}/word.txt"
            return [{"type": "tool_use", "name": "Bash", "input": {"command": command, "description": "Arguments"}}]
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
