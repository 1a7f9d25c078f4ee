"""Claude Code's own tools in an agent: enabled by the capability, in addition to the agent's own."""

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import AgentDefinition, PermissionResultAllow, PermissionResultDeny
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, PartStartEvent, ToolDenied
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.run import AgentRunResult

from cc_loopback import LoopbackServer
from cc_model import ClaudeCode, ClaudeCodeModel, ClaudeCodeProvider, claude_code
from cc_session import Policy, Rule, StdioServer


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("folder")
    (folder / "note.txt").write_text("the secret is 42\n")
    return folder


@pytest.fixture(scope="module")
def asks(folder: Path) -> ClaudeCode[object]:
    """Return a capability that asks the agent to approve commands. Agents with the same capability share processes."""
    return claude_code(tools=["Read", "Bash"], policy=Policy([Rule("Bash", "ask")]), approvals=True, cwd=folder)


def script(shared_api: LoopbackServer, *replies: Any) -> None:
    remaining = list(replies)

    def respond(_body: dict[str, Any]) -> Any:
        return remaining.pop(0)

    shared_api.respond = respond


def read(folder: Path) -> dict[str, Any]:
    return {"type": "tool_use", "name": "Read", "input": {"file_path": str(folder / "note.txt")}}


def run(command: str) -> dict[str, Any]:
    return {"type": "tool_use", "name": "Bash", "input": {"command": command}}


async def test_calls_of_claude_codes_tools_are_native_parts(
    shared_api: LoopbackServer, provider: ClaudeCodeProvider, folder: Path
) -> None:
    """ARCH-27, MODEL-82: in runs, streams and histories."""
    script(shared_api, [read(folder)], "It is 42.", [read(folder)], "It is 42.", "Bye.")
    agent = Agent("claude-code:sonnet", capabilities=[claude_code(provider=provider, tools=["Read"], cwd=folder)])
    result = await agent.run("What is the secret?")
    assert result.output == "It is 42."
    call, answer, text = result.response.parts
    assert isinstance(call, NativeToolCallPart)
    assert isinstance(answer, NativeToolReturnPart)
    assert isinstance(text, TextPart)
    assert call.args_as_dict()["tool_name"] == "Read"
    assert "the secret is 42" in str(answer.content)
    assert result.usage.requests == 2

    async with agent.run_stream_events("What is the secret?") as events:
        started = [event.part.part_kind async for event in events if isinstance(event, PartStartEvent)]
    assert started == ["builtin-tool-call", "builtin-tool-return", "text"]

    await Agent(ClaudeCodeModel(provider=provider)).run("Thanks.", message_history=result.all_messages())
    messages = shared_api.requests[-1]["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "assistant", "user"]
    assert "the secret is 42" in str(messages[2])


@pytest.mark.worlds
async def test_a_policy_decides_and_asks_in_the_agents_loop(
    shared_api: LoopbackServer, provider: ClaudeCodeProvider, folder: Path
) -> None:
    """MODEL-82"""
    mine = asyncio.get_running_loop()
    commands: list[str] = []

    async def ask(_tool: str, input: dict[str, Any], _context: object) -> PermissionResultAllow | PermissionResultDeny:
        assert asyncio.get_running_loop() is mine
        commands.append(input["command"])
        return PermissionResultAllow() if input["command"] == "ls" else PermissionResultDeny(message="Not that.")

    script(shared_api, [run("ls"), run("rm note.txt")], "Done.")
    policy = Policy([Rule("Bash", "ask")], ask=ask)
    agent = Agent(
        ClaudeCodeModel(provider=provider), capabilities=[claude_code(tools=["Bash"], policy=policy, cwd=folder)]
    )
    result = await agent.run("Go.")
    assert sorted(commands) == ["ls", "rm note.txt"]
    answers = [str(part.content) for part in result.response.parts if isinstance(part, NativeToolReturnPart)]
    assert "note.txt" in answers[0]
    assert "Not that." in answers[1]
    assert (folder / "note.txt").exists()


async def run_to_approvals(
    provider: ClaudeCodeProvider, asks: ClaudeCode[object]
) -> tuple[Agent[object, Any], AgentRunResult[Any], list[ToolCallPart]]:
    """Run until approvals are needed; return the agent, the result, and the calls in question."""
    agent: Agent[object, Any] = Agent(
        ClaudeCodeModel(provider=provider), capabilities=[asks], output_type=[str, DeferredToolRequests]
    )
    first = await agent.run("Make it.")
    assert isinstance(first.output, DeferredToolRequests)
    return agent, first, first.output.approvals


@pytest.mark.worlds
async def test_a_question_becomes_a_deferred_approval(
    shared_api: LoopbackServer, provider: ClaudeCodeProvider, folder: Path, asks: ClaudeCode[object]
) -> None:
    """MODEL-82"""
    script(shared_api, [run("touch made"), read(folder)], [run("touch made")], "Done.")
    agent, first, approvals = await run_to_approvals(provider, asks)
    (wanted,) = approvals
    assert (wanted.tool_name, wanted.args_as_dict()) == ("Bash", {"command": "touch made"})
    assert "the secret is 42" in str(first.response.parts)
    assert not (folder / "made").exists()
    await provider.aclose()  # another process, as after a week
    results = DeferredToolResults(approvals={wanted.tool_call_id: True})
    second = await agent.run(message_history=first.all_messages(), deferred_tool_results=results)
    assert second.output == "Done."
    assert (folder / "made").exists()
    assert len(shared_api.requests) == 3
    assert sorted(tool["name"] for tool in shared_api.requests[0]["tools"]) == ["Bash", "Read"]


async def test_an_approval_holds_for_a_single_call(
    shared_api: LoopbackServer, provider: ClaudeCodeProvider, folder: Path, asks: ClaudeCode[object]
) -> None:
    script(shared_api, [run("touch one")], [run("touch one"), run("touch one"), run("touch two")])
    agent, first, approvals = await run_to_approvals(provider, asks)
    results = DeferredToolResults(approvals={approvals[0].tool_call_id: True})
    second = await agent.run(message_history=first.all_messages(), deferred_tool_results=results)
    assert isinstance(second.output, DeferredToolRequests)
    assert [call.args_as_dict()["command"] for call in second.output.approvals] == ["touch one", "touch two"]
    assert (folder / "one").exists()
    assert not (folder / "two").exists()


async def test_a_denied_call_does_not_run(
    shared_api: LoopbackServer, provider: ClaudeCodeProvider, folder: Path, asks: ClaudeCode[object]
) -> None:
    script(shared_api, [run("touch denied")], "Then not.")
    agent, first, approvals = await run_to_approvals(provider, asks)
    results = DeferredToolResults(approvals={approvals[0].tool_call_id: ToolDenied("Better not.")})
    second = await agent.run(message_history=first.all_messages(), deferred_tool_results=results)
    assert second.output == "Then not."
    assert "Better not." in str(shared_api.requests[-1]["messages"])
    assert not (folder / "denied").exists()


def test_a_policy_without_tools_is_refused() -> None:
    with pytest.raises(ValueError, match="tools="):
        claude_code(policy=Policy())


def test_what_would_have_no_effect_is_refused() -> None:
    with pytest.raises(ValueError, match=r"agents\['a'\]: an effort would have no effect"):
        claude_code(agents={"a": AgentDefinition(description="d", prompt="p", effort="low")})
    with pytest.raises(ValueError, match="approvals need a policy"):
        claude_code(tools=["Bash"], approvals=True)


@pytest.mark.worlds
@pytest.mark.parametrize("policy", [None, Policy([Rule("Bash", "deny")])])
async def test_skills_are_found_in_the_folder_and_in_the_config(
    policy: Policy | None, shared_api: LoopbackServer, tmp_path: Path
) -> None:
    """MODEL-82. A skill that is named twice is there once."""
    config = tmp_path / "config"
    folder = tmp_path / "folder"
    for place, name in ((folder / ".claude", "ours"), (config, "mine"), (config, "other")):
        (place / "skills" / name).mkdir(parents=True)
        (place / "skills" / name / "SKILL.md").write_text(
            f"---\nname: {name}\ndescription: is {name}\n---\nAll {name}!\n"
        )
    uses = [{"type": "tool_use", "name": "Skill", "input": {"skill": name}} for name in ("ours", "mine", "other")]
    script(shared_api, uses, "Ok.")
    env = {**shared_api.env(), "CLAUDE_CONFIG_DIR": str(config)}
    async with ClaudeCodeProvider(env=env, max_retries=0) as provider:
        tools = claude_code(skills=["ours", "mine", "ours"], cwd=folder, policy=policy)
        await Agent(ClaudeCodeModel(provider=provider), capabilities=[tools]).run("Go.")
    last = str(shared_api.requests[-1])
    assert "All ours!" in last
    assert "All mine!" in last
    assert "All other!" not in last
    assert [name for name in ("ours", "mine", "other") if f"is {name}" in last] == ["ours", "mine"]
    assert "total_tokens" not in last


async def test_what_a_tool_leaves_behind_reaches_no_other_request(
    shared_api: LoopbackServer, provider: ClaudeCodeProvider, folder: Path
) -> None:
    """MODEL-82, SES-62: a shell's folder, and tasks."""
    (folder / "below").mkdir()
    tools = claude_code(tools=["Bash", "TaskCreate", "TaskList"], cwd=folder)
    agent = Agent(ClaudeCodeModel(provider=provider), capabilities=[tools])
    task = {"type": "tool_use", "name": "TaskCreate", "input": {"subject": "A secret.", "description": "Mine."}}
    script(shared_api, [run("cd below"), task], "Ok.")
    await agent.run("Go.")
    script(shared_api, [run("pwd"), {"type": "tool_use", "name": "TaskList", "input": {}}], "Ok.")
    await agent.run("Go.")
    results = str(shared_api.requests[-1]["messages"][-1])
    assert str(folder) in results
    assert "below" not in results
    assert "A secret." not in results


async def test_a_changed_skill_reaches_the_next_request(shared_api: LoopbackServer, tmp_path: Path) -> None:
    """MODEL-82: a process keeps the description that it has read."""
    skill = tmp_path / ".claude" / "skills" / "ours" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    async with ClaudeCodeProvider(env=shared_api.env(), max_retries=0) as provider:
        agent = Agent(ClaudeCodeModel(provider=provider), capabilities=[claude_code(skills=["ours"], cwd=tmp_path)])
        for text in ("first text", "second text"):
            skill.write_text(f"---\nname: ours\ndescription: {text}\n---\nAll ours!\n")
            await agent.run("Go.")
            assert text in str(shared_api.requests[-1])


async def test_a_missing_skill_is_an_error(provider: ClaudeCodeProvider, folder: Path) -> None:
    tools = claude_code(skills=["none"], cwd=folder)
    with pytest.raises(ModelHTTPError, match="There is no skill 'none' in "):
        await Agent(ClaudeCodeModel(provider=provider), capabilities=[tools]).run("Go.")


@dataclass
class Nothing:
    """Output without content."""


@pytest.mark.parametrize("rule", [Rule("mcp__files__write", "ask"), Rule("mcp__files__*", "ask"), None])
async def test_a_call_of_an_mcp_tool_can_wait_for_an_approval(rule: Rule | None) -> None:
    """MODEL-82: only the call tells the name; the agent's tools and output tools need no approval."""
    calls = [ToolCallPart("mine", {}), ToolCallPart("mcp__files__write", {"page": 1}), ToolCallPart("final_result", {})]
    offers: list[list[str]] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        offers.append([tool.name for tool in info.function_tools])
        return ModelResponse([calls[0]] if len(offers) == 1 else [calls[1]] if len(offers) == 2 else [calls[2]])

    policy = Policy([rule]) if rule else Policy(default="ask")
    files = claude_code(mcp_servers={"files": StdioServer("none", [])}, policy=policy, approvals=True)
    agent = Agent(FunctionModel(answer), capabilities=[files], output_type=[Nothing, DeferredToolRequests])

    @agent.tool_plain
    def mine() -> str:
        return "ok"

    first = await agent.run("Write.")
    assert isinstance(first.output, DeferredToolRequests)
    assert [call.tool_name for call in first.output.approvals] == ["mcp__files__write"]
    history = ModelMessagesTypeAdapter.validate_json(first.all_messages_json())
    results = DeferredToolResults(approvals={call.tool_call_id: True for call in first.output.approvals})
    second = await agent.run(message_history=history, deferred_tool_results=results)
    assert second.output == Nothing()
    assert "This call was approved." in str(second.new_messages())
    third = await agent.run("Thanks.", message_history=second.all_messages())
    assert third.output == Nothing()
    assert offers == [["mine"]] * 4


@pytest.mark.skipif(sys.platform != "linux", reason="another sandbox")
async def test_without_the_sandboxs_programs_a_run_fails_and_names_them(
    shared_api: LoopbackServer, provider: ClaudeCodeProvider, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    """MODEL-185."""
    monkeypatch.setenv("PATH", "/nowhere")
    tools = claude_code(provider=provider, tools=["Bash"], cwd=folder, sandbox=True)
    with pytest.raises(ModelAPIError, match=r"needs bwrap and socat.* apt install"):
        await Agent("claude-code:sonnet", capabilities=[tools]).run("Try.")
    assert shared_api.requests == []
