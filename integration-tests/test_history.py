"""A conversation goes on wherever its history is: in another Python process, after its CLI process has gone."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
from anyio import to_thread
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
from pydantic_ai.messages import ModelMessagesTypeAdapter

from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider

# Runs an agent until it wants an approval, and prints the history, which ends in a tool call.
FIRST_HALF = """
import asyncio, json, sys
from cc_model import ClaudeCodeModel, ClaudeCodeProvider
from pydantic_ai import Agent, DeferredToolRequests

agent = Agent(output_type=[str, DeferredToolRequests], instructions="Be careful.")

@agent.tool_plain(requires_approval=True)
def delete(path: str) -> str:
    "Delete a file."
    return f"deleted {path}"

@agent.tool_plain
def look(path: str) -> str:
    "Look at a file."
    return f"{path} is empty"

async def main():
    async with ClaudeCodeProvider(env=json.loads(sys.argv[1])) as provider:
        result = await agent.run("Clean up.", model=ClaudeCodeModel(provider=provider))
        assert isinstance(result.output, DeferredToolRequests), result.output
        sys.stdout.write(result.all_messages_json().decode())

asyncio.run(main())
"""


def agent() -> Agent[None, str | DeferredToolRequests]:
    agent = Agent(output_type=[str, DeferredToolRequests], instructions="Be careful.")

    @agent.tool_plain(requires_approval=True)
    def delete(path: str) -> str:
        """Delete a file."""
        return f"deleted {path}"

    @agent.tool_plain
    def look(path: str) -> str:
        """Look at a file."""
        return f"{path} is empty"

    return agent  # pyright: ignore[reportReturnType]


async def test_tool_results_continue_a_history_made_in_another_python_process(
    loopback: LoopbackServer, model: ClaudeCodeModel, tmp_path: Path
) -> None:
    """MODEL-55, MODEL-67"""
    first_half = await to_thread.run_sync(
        lambda: subprocess.run(
            [sys.executable, "-c", FIRST_HALF, json.dumps(loopback.env())],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
            cwd=tmp_path,
        )
    )
    history = ModelMessagesTypeAdapter.validate_json(first_half.stdout)
    [call] = [part for part in history[-2].parts if part.part_kind == "tool-call" and part.tool_name == "delete"]
    before: dict[str, Any] = loopback.requests[-1]

    approved = DeferredToolResults(approvals={call.tool_call_id: True})
    result = await agent().run(model=model, message_history=history, deferred_tool_results=approved)

    after = loopback.requests[-1]
    assert "delete returned" in str(result.output)
    assert [message["role"] for message in after["messages"]] == ["user", "assistant", "user"]
    assert after["messages"][0]["content"][0]["text"] == before["messages"][0]["content"][0]["text"]
    assert {block["type"] for block in after["messages"][2]["content"]} == {"tool_result"}
    assert len(after["messages"][2]["content"]) == 2


async def test_a_conversation_goes_on_after_its_process_was_killed(
    loopback: LoopbackServer, model: ClaudeCodeModel, provider: ClaudeCodeProvider
) -> None:
    """MODEL-67"""
    plain = Agent(model)
    first = await plain.run("One.")
    [pid] = provider.transport.pids
    psutil.Process(pid).kill()
    await to_thread.run_sync(psutil.wait_procs, [psutil.Process(pid)] if psutil.pid_exists(pid) else [], 5)

    second = await plain.run("Two.", message_history=first.all_messages())

    assert "Two." in second.output
    assert [message["role"] for message in loopback.requests[-1]["messages"]] == ["user", "assistant", "user"]
    assert provider.transport.pids != [pid]


async def test_the_same_history_can_be_continued_twice(loopback: LoopbackServer, model: ClaudeCodeModel) -> None:
    plain = Agent(model)
    first = await plain.run("One.")
    for prompt in ("Two.", "Other two."):
        await plain.run(prompt, message_history=first.all_messages())
        last = loopback.requests[-1]["messages"]
        assert [message["role"] for message in last] == ["user", "assistant", "user"]
        assert last[-1]["content"][0]["text"] == prompt
