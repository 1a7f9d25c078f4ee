"""The scripted API in a separate process, so that its work does not count in the figures.

    python scripts/bench/api.py

Prints the environment for clients as a JSON line, and exits at the end of standard input.

Answers: a call of the tool, if the request has a tool and no result yet; for `Count to N.` N words, each a delta
when streamed; for `Query N.` the same; otherwise "Hello." A peer that offers the model no tools asks in two prompts for
the function, and for files with the arguments; it gets both.
"""

import json
import re
import sys
from typing import Any

from cc_loopback import LoopbackServer

# The loopback API streams a text block in at most 64 pieces.
WORDS_PER_BLOCK = 50


CALL = {"type": "tool_use", "name": "look_up", "input": {"word": "hello"}}
# Prompts in which pydantic-ai-claude-code asks for a choice, and for a folder with a file for each argument.
CHOICE = "CHOICE: look_up"
ARGUMENTS = re.compile(r"mkdir -p ([^\s\\]*claude_data_structure_\w+)")


def respond(body: dict[str, Any]) -> str | list[dict[str, Any]]:
    # With all built-in tools the CLI adds a message about the machine after the prompt.
    content = [message["content"] for message in body["messages"] if message["role"] == "user"][-1]
    if content[-1]["type"] != "tool_result":
        # In the CLI's own loop the tool's name has the server's name as a prefix.
        names = [str(tool.get("name")) for tool in body.get("tools", [])]
        if name := next((name for name in names if name.split("__")[-1] == CALL["name"]), None):
            return [{**CALL, "name": name}]
        prompt = json.dumps(content)
        if CHOICE in prompt:
            return CHOICE
        if folder := ARGUMENTS.search(prompt):
            command = f"mkdir -p {folder[1]} && printf hello > {folder[1]}/word.txt"
            return [{"type": "tool_use", "name": "Bash", "input": {"command": command, "description": "Arguments"}}]
    prompt = json.dumps(content)
    if wanted := re.search(r"Count to (\d+)\.", prompt):
        return counted(int(wanted[1]))
    query = re.search(r"Query \d+\.", prompt)
    return query[0] if query else "Hello."


def counted(count: int) -> list[dict[str, Any]]:
    """Return `count` words, in blocks that are streamed word by word."""
    words = [f"word{number} " for number in range(count)]
    return [
        {"type": "text", "text": "".join(words[start : start + WORDS_PER_BLOCK])}
        for start in range(0, count, WORDS_PER_BLOCK)
    ]


def main() -> None:
    with LoopbackServer(respond) as api:
        print(json.dumps({**api.env(), "BENCH_API_URL": api.url}), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
