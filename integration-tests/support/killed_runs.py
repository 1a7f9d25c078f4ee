"""Run agents on the loopback API while their CLI processes are killed, with secrets in all possible places.

A script for a separate interpreter with default logging: `python killed_runs.py LOGIN KILLS`. Prints as JSON all
errors and reprs that a program could show; stderr is unchanged.
"""

import asyncio
import json
import os
import signal
import sys
import traceback
from contextlib import suppress
from typing import Literal, cast

from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelAPIError

from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider, claude_code
from cc_session import StdioServer

LONGEST_DELAY = 0.3  # seconds: longer than the answer takes
EVENT_DELAY = 0.02


SERVER = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    server = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    if "id" in request:
        result = server if request["method"] == "initialize" else {"tools": []}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""


def look(place: str) -> str:
    """SECRET of a tool's description"""
    return place


async def kill(provider: ClaudeCodeProvider, delay: float) -> int:
    assert sys.platform != "win32"
    await asyncio.sleep(delay)
    pids = provider.transport.pids
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return len(pids)


def shown(error: BaseException) -> list[str]:
    return [str(error), repr(error), *traceback.format_exception(error)]


async def main(login: Literal["api-key", "oauth"], kills: int) -> None:
    texts: list[str] = []
    killed = 0
    with LoopbackServer(event_delay=EVENT_DELAY) as api:
        env = {**api.env(login), "ANTHROPIC_CUSTOM_HEADERS": "X-Gateway-Token: SECRET-of-a-header"}
        secret = "CLAUDE_CODE_OAUTH_TOKEN" if login == "oauth" else "ANTHROPIC_API_KEY"
        async with ClaudeCodeProvider(
            env={**env, secret: "sk-ant-SECRET-of-a-login"}, pool=1, max_retries=0
        ) as provider:
            server = StdioServer(sys.executable, ["-c", SERVER], env={"TOKEN": "SECRET of a server"})
            model = ClaudeCodeModel(provider=provider)
            plain = Agent(model, instructions="SECRET of instructions", tools=[look])
            own = Agent(model, capabilities=[claude_code(mcp_servers={"s": server})])
            for number in range(kills):
                api.fail_next(500, message="SECRET of an earlier request")
                with suppress(ModelAPIError):
                    await plain.run("SECRET of a prompt")
                killing = asyncio.ensure_future(kill(provider, LONGEST_DELAY * number / max(1, kills - 1)))
                try:
                    # If the process is killed in time, another one answers.
                    await (own if number % 3 == 2 else plain).run("Hello.")
                except ModelAPIError as error:
                    texts.extend(shown(error))
                killed += await killing
                texts.extend(map(repr, (provider, provider.transport, provider.transport.stats(), model)))
    sys.stdout.write(json.dumps({"killed": killed, "texts": texts}))


if __name__ == "__main__":
    asyncio.run(main(cast('Literal["api-key", "oauth"]', sys.argv[1]), int(sys.argv[2])))
