"""Questions of Claude and of MCP servers to the user, which an agent's program answers."""

import asyncio
import json
import sys
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import AgentDefinition
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ToolDenied
from pydantic_ai.messages import NativeToolReturnPart

from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider, claude_code
from cc_session import Policy, Question, Questions, Rule, StdioServer
from cc_types import JsonValue

OPTIONS = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]
INPUT = {"questions": [{"question": "Which colour?", "header": "Colour", "options": OPTIONS, "multiSelect": False}]}
ASK = {"type": "tool_use", "name": "AskUserQuestion", "input": INPUT}
ORDER: dict[str, Any] = {"type": "tool_use", "name": "mcp__form__order", "input": {}}

# A server whose tool asks the user for a size, and returns the answer.
FORM_SERVER = """
import json, sys
def send(**message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method, request = message.get("method"), message.get("id")
    if "result" in message:
        send(id=call, result={"content": [{"type": "text", "text": json.dumps(message["result"])}]})
    elif method == "initialize":
        version = message["params"]["protocolVersion"]
        send(id=request, result={"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {
            "name": "form", "version": "1"}})
    elif method == "tools/list":
        send(id=request, result={"tools": [{"name": "order", "inputSchema": {"type": "object"}}]})
    elif method == "tools/call":
        call = request
        schema = {"type": "object", "properties": {"size": {"type": "integer"}}}
        send(id="q", method="elicitation/create", params={"message": "Which size?", "requestedSchema": schema})
    elif request is not None:
        send(id=request, error={"code": -32601, "message": "unknown"})
"""


def calling(*calls: dict[str, Any]) -> Callable[[dict[str, Any]], Any]:
    """Make a model that sends these calls after each prompt, and then says that it is done."""
    return lambda body: "Done." if "tool_result" in json.dumps(body["messages"][-1]) else [*calls]


def returned(result: Any) -> str:
    parts: list[Any] = [part for part in result.response.parts if isinstance(part, NativeToolReturnPart)]
    return json.dumps([part.content for part in parts])


@pytest.mark.worlds
async def test_a_form_of_an_mcp_server_gets_its_fields(
    shared_api: LoopbackServer, provider: ClaudeCodeProvider, tmp_path: Path
) -> None:
    """MODEL-150: without them it is declined."""
    script = tmp_path / "form.py"
    script.write_text(FORM_SERVER)
    shared_api.respond = calling(ORDER)
    servers = {"form": StdioServer(sys.executable, [str(script)])}
    agent = Agent(ClaudeCodeModel(provider=provider))
    for questions, outcome in ((Questions(lambda _question: {"size": 42}), "accept"), (None, "decline")):
        tools = claude_code(mcp_servers=servers, questions=questions)
        result = await agent.run("Order it.", capabilities=[tools])
        assert outcome in returned(result)
        assert ("42" in returned(result)) == (outcome == "accept")


@pytest.mark.worlds
async def test_runs_at_once_get_their_own_answers(shared_api: LoopbackServer, provider: ClaudeCodeProvider) -> None:
    """MODEL-150: with one capability, and with several."""
    name = ContextVar[str]("name")

    async def answer(question: Question) -> JsonValue:
        await asyncio.sleep(0)
        return {question.text: f"for {name.get()}"}

    shared_api.respond = calling(ASK)
    shared = claude_code(tools=["AskUserQuestion"], questions=Questions(answer))

    async def run(number: int) -> str:
        name.set(str(number))
        other = Questions(lambda question: {question.text: f"for {number}"})
        tools = shared if number % 2 else claude_code(tools=["AskUserQuestion"], questions=other)
        return returned(await Agent(ClaudeCodeModel(provider=provider), capabilities=[tools]).run("Go."))

    for number, text in enumerate(await asyncio.gather(*map(run, range(4)))):
        assert f"for {number}" in text


@pytest.mark.worlds
async def test_a_deferred_question_is_answered_by_a_later_run(
    shared_api: LoopbackServer, provider: ClaudeCodeProvider
) -> None:
    """MODEL-151: in any process."""

    def respond(body: dict[str, Any]) -> Any:
        return "Done." if "user answers" in json.dumps(body["messages"]) else [ASK]

    shared_api.respond = respond
    tools = claude_code(tools=["AskUserQuestion"], policy=Policy([Rule("AskUserQuestion", "ask")]), approvals=True)
    agent: Agent[object, Any] = Agent(
        ClaudeCodeModel(provider=provider), capabilities=[tools], output_type=[str, DeferredToolRequests]
    )
    first = await agent.run("Paint it.")
    assert isinstance(first.output, DeferredToolRequests)
    [call] = first.output.approvals
    assert call.args_as_dict() == INPUT
    await provider.aclose()
    answers = DeferredToolResults(approvals={call.tool_call_id: ToolDenied("The user answers: Blue.")})
    second = await agent.run(message_history=first.all_messages(), deferred_tool_results=answers)
    assert second.output == "Done."
    assert "The user answers: Blue." in json.dumps(shared_api.requests[-1]["messages"])


def test_a_question_that_nobody_could_answer_is_an_error_at_once() -> None:
    """MODEL-151"""
    questions = Questions(lambda _question: None)
    with pytest.raises(ValueError, match=r"nobody could answer the tool 'AskUserQuestion': set questions="):
        claude_code(tools=["AskUserQuestion"])
    with pytest.raises(ValueError, match="questions, cwd, max_turns and sandbox need tools"):
        claude_code(questions=questions)
    with pytest.raises(ValueError, match="would wait for an approval, too"):
        claude_code(tools=["AskUserQuestion"], policy=Policy(default="ask"), approvals=True, questions=questions)


@pytest.mark.worlds
async def test_a_background_sub_agent_reports_within_the_request(
    shared_api: LoopbackServer, provider: ClaudeCodeProvider
) -> None:
    """MODEL-152"""

    def respond(body: dict[str, Any]) -> Any:
        if "You are the helper" in json.dumps(body.get("system")):
            return "It is 42."
        if "tool_result" in json.dumps(body["messages"][-1]):
            return "Done."
        start = {"subagent_type": "helper", "description": "look", "prompt": "Find it.", "run_in_background": True}
        return [{"type": "tool_use", "name": "Agent", "input": start}]

    shared_api.respond = respond
    helper = AgentDefinition(description="Helps.", prompt="You are the helper.", tools=["Read"], background=True)
    tools = claude_code(tools=["Read"], agents={"helper": helper})
    result = await Agent(ClaudeCodeModel(provider=provider), capabilities=[tools]).run("Find it.")
    assert result.output == "Done."
    assert "It is 42." in returned(result)
