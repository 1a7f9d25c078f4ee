"""Any process answers any request: from another agent or client, with other instructions or another model."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, FunctionToolset

from api_script import call
from both_ways import comparable
from cc_loopback import Login, LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider, claude_code

MODELS = ["claude-sonnet-5", "claude-opus-4-8", "claude-haiku-4-5"]


def instructions_and_prompt(body: dict[str, Any]) -> str:
    return f"{body['system'][0]['text']} {body['messages'][-1]['content'][-1]['text']} {body['model']}"


async def test_instructions_and_models_change_on_one_process(
    loopback: LoopbackServer, own_provider: ClaudeCodeProvider
) -> None:
    """MSG-02, MSG-13"""
    loopback.respond = instructions_and_prompt
    for number in range(5):
        for name in MODELS:
            agent = Agent(ClaudeCodeModel(name, provider=own_provider), instructions=f"Instructions {number}.")
            assert (await agent.run("Go.")).output == f"Instructions {number}. Go. {name}"
    assert len(loopback.requests) == 15
    assert own_provider.transport.stats().starts == 1


def look() -> str:
    """Look."""
    return "seen"


def feel() -> str:
    """Feel."""
    return "soft"


async def sent_in_the_clis_loop(
    loopback: LoopbackServer, login: Login, runs: Sequence[tuple[str, FunctionToolset[object], Path | None]]
) -> tuple[list[Any], int]:
    """Run agents in turn; return the requests, and the number of starts."""
    loopback.requests.clear()
    async with ClaudeCodeProvider(env=loopback.env(login), pool=1, max_retries=0) as provider:
        for words, tools, folder in runs:
            model = ClaudeCodeModel(provider=provider)
            own = [] if folder is None else [claude_code(tools=["Bash"], cwd=folder)]
            agent = Agent(model, instructions=words, toolsets=[tools], capabilities=own)
            model.set_agent_toolsets(agent.toolsets)
            assert (await agent.run("Go.")).output == "Done."
        folders = re.compile(r"[^ \"]*cc-session-\w+")
        bodies = [comparable([body], login) for body in loopback.requests]
        return [folders.sub("…", json.dumps(body)) for body in bodies], provider.transport.stats().starts


@pytest.mark.worlds
@pytest.mark.parametrize(
    ("login", "has_own_tools"),
    [
        ("oauth", False),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (("oauth", True), ("api-key", False), ("api-key", True))
        ),
    ],
)
async def test_in_the_clis_loop_warm_and_new_processes_send_the_same(
    has_own_tools: bool, login: Login, loopback: LoopbackServer, tmp_path: Path
) -> None:
    """MSG-116, SES-61: instructions, tools, and the folder where the CLI's configuration is not the user's.

    Beside its own tools the CLI keeps the texts of the caller's, so that other functions take another process.
    """

    def respond(body: dict[str, Any]) -> Any:
        if "tool_result" in str(body["messages"][-1]):
            return "Done."
        name = body["tools"][-1]["name"]
        return [call(name, command="pwd") if name == "Bash" else call(name)]

    loopback.respond = respond
    runs: list[tuple[str, FunctionToolset[object], Path | None]] = []
    for number, tools in enumerate([[look], [feel], [look, feel], [look]]):
        folder = tmp_path / str(number if login == "api-key" else 0)
        folder.mkdir(exist_ok=True)
        runs.append((f"Instructions {number}.", FunctionToolset(tools), folder if has_own_tools else None))
    warm, starts = await sent_in_the_clis_loop(loopback, login, runs)
    fresh = [body for run in runs for body in (await sent_in_the_clis_loop(loopback, login, [run]))[0]]
    assert (warm, starts) == (fresh, len(runs) if has_own_tools else 1)


@pytest.mark.slow
async def test_a_login_that_changed_is_used_from_the_next_request_on(
    loopback: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SES-61: another provider's key never reaches this provider's processes."""
    for name, value in loopback.env().items():
        monkeypatch.setenv(name, value)
    async with (
        ClaudeCodeProvider(max_retries=0) as provider,
        ClaudeCodeProvider(env={"ANTHROPIC_API_KEY": "of the other"}, max_retries=0) as other,
    ):
        for key in ("first", "second"):
            monkeypatch.setenv("ANTHROPIC_API_KEY", key)
            for each in (provider, other):
                await Agent(ClaudeCodeModel(provider=each)).run("Hello.")
    keys = [call.headers["x-api-key"] for call in loopback.calls]
    assert keys == ["first", "of the other", "second", "of the other"]
