"""Fields for an agent's own answers do not reach its sub-agents and searches."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from claude_agent_sdk import AgentDefinition
from pydantic_ai import Agent, NativeOutput, ToolOutput
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.usage import UsageLimits

from cc_loopback import LoopbackServer, call
from cc_model import ClaudeCodeModel, ClaudeCodeProvider, claude_code


@dataclass
class Answer:
    """An output that the API checks."""

    number: int


@pytest.mark.worlds
@pytest.mark.parametrize("output", [NativeOutput(Answer), ToolOutput(Answer)], ids=["native", "tool"])
async def test_a_sub_agent_answers_in_its_own_way(
    shared_api: LoopbackServer, provider: ClaudeCodeProvider, output: Any
) -> None:
    """MODEL-186: also if several run at once, or one cannot start."""

    def respond(body: dict[str, Any]) -> Any:
        if "Agent" not in (names := {tool["name"] for tool in body.get("tools", [])}):
            return "The helper says 42."
        if "The helper says 42." not in str(body["messages"]):
            return [
                call("Agent", description="d", prompt="p", subagent_type=n) for n in ("helper", "helper", "useless")
            ]
        final = {"type": "tool_use", "name": "final_result", "input": {"number": 42}}
        return [final] if "final_result" in names else '{"number": 42}'

    shared_api.respond = respond
    helper = AgentDefinition(description="thinks", prompt="You think.", tools=["Read"])
    useless = replace(helper, tools=["Bash"])  # Claude Code refuses it
    tools = claude_code(tools=["Read"], agents={"helper": helper, "useless": useless})
    agent = Agent(ClaudeCodeModel(provider=provider), output_type=output, capabilities=[tools])
    assert (await agent.run("Ask.", model_settings={"stop_sequences": ["END"]})).output == Answer(42)
    own = {"stop_sequences", "tool_choice", "output_config"}
    sent = [own & body.keys() for body in shared_api.requests]
    assert sent == [sent[0], set[str](), set[str](), sent[0]]
    assert len(sent[0]) == 2


async def test_a_sub_agent_that_calls_a_function_of_the_agent_holds_nothing_up(
    shared_api: LoopbackServer, provider: ClaudeCodeProvider
) -> None:
    """MODEL-82: the functions run in the agent's loop, where a sub-agent has no turn."""
    numbers: list[int] = []

    def respond(body: dict[str, Any]) -> Any:
        messages = str(body["messages"])
        if "Think." in str(body["messages"][0]):
            return "It is not for me." if "Only the main agent can call" in messages else [call("note", number=1)]
        if "It is not for me." not in messages:
            return [call("Agent", description="d", prompt="Think.")]
        return "Done." if "noted" in messages else [call("note", number=2)]

    def note(number: int) -> str:
        numbers.append(number)
        return "noted"

    shared_api.respond = respond
    tools = claude_code(agents={"helper": AgentDefinition(description="thinks", prompt="You think.")})
    agent = Agent(ClaudeCodeModel(provider=provider), tools=[note], capabilities=[tools])
    assert (await agent.run("Ask.")).output == "Done."
    assert numbers == [2]


async def test_a_run_s_limit_holds_for_calls_of_sub_agents(
    shared_api: LoopbackServer, provider: ClaudeCodeProvider
) -> None:
    """IPC-P-57: of functions that Claude Code calls in its own loop."""
    numbers: list[int] = []

    def respond(body: dict[str, Any]) -> Any:
        if "Think." not in str(body["messages"][0]):
            return [call("Agent", description="d", prompt="Think.")]
        [name] = [tool["name"] for tool in body["tools"] if tool["name"].endswith("note")]
        return [call(name, number=len(numbers))]

    def note(number: int) -> str:
        numbers.append(number)
        return "noted"

    shared_api.respond = respond
    tools = claude_code(agents={"helper": AgentDefinition(description="thinks", prompt="You think.")})
    model = ClaudeCodeModel(provider=provider)
    agent = Agent(model, tools=[note], capabilities=[tools])
    model.set_agent_toolsets(agent.toolsets)
    with pytest.raises(UsageLimitExceeded, match="tool_calls_limit of 2"):
        await agent.run("Ask.", usage_limits=UsageLimits(tool_calls_limit=2))
    assert numbers == [0, 1]


@pytest.mark.worlds
async def test_a_search_has_neither_format_nor_thinking(
    shared_api: LoopbackServer, provider: ClaudeCodeProvider
) -> None:
    """MODEL-186: Claude Code forces the call of the API's own tool, which excludes thinking."""

    def respond(body: dict[str, Any]) -> Any:
        if "WebSearch" not in {tool.get("name") for tool in body["tools"]}:
            return "Found: 42."
        return '{"number": 42}' if "Found: 42." in str(body["messages"]) else [call("WebSearch", query="answer")]

    shared_api.respond = respond
    agent = Agent(
        ClaudeCodeModel(provider=provider),
        output_type=NativeOutput(Answer),
        capabilities=[claude_code(tools=["WebSearch"])],
    )
    assert (await agent.run("Ask.", model_settings={"thinking": "low"})).output == Answer(42)
    sent = [{"output_config", "thinking"} & body.keys() for body in shared_api.requests]
    assert sent == [{"output_config", "thinking"}, set(), {"output_config", "thinking"}]
    assert shared_api.requests[1]["tool_choice"] == {"type": "tool", "name": "web_search"}
