"""pydantic-ai's `MCPServerTool`: Claude Code connects to the server and calls the tools there."""

import asyncio
import base64
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
import uvicorn
from mcp.server import MCPServer
from mcp.types import AudioContent
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.messages import NativeToolCallPart, NativeToolReturnPart
from pydantic_ai.native_tools import MCPServerTool
from starlette.types import ASGIApp, Receive, Scope, Send

from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider, claude_code
from cc_session import HTTPServer, Policy, Rule

SOUND = b"A sound that is in no file." * 9


@dataclass
class Wiki:
    """MCP server over HTTP, which records requests."""

    url: str = ""
    authorization: set[str] = field(default_factory=set[str])
    questions: list[str] = field(default_factory=list[str])

    def app(self) -> ASGIApp:
        server = MCPServer("wiki")

        @server.tool()
        def ask(question: str) -> str:
            self.questions.append(question)
            return f"{question} That."

        @server.tool()
        def delete(page: str) -> str:
            self.questions.append(f"delete {page}")
            return "gone"

        @server.tool()
        def listen() -> AudioContent:
            return AudioContent(type="audio", data=base64.b64encode(SOUND).decode(), mime_type="audio/mpeg")

        application = cast(ASGIApp, server.streamable_http_app())

        async def noting(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                self.authorization.add(dict(scope["headers"]).get(b"authorization", b"").decode())
            await application(scope, receive, send)

        return noting


@pytest.fixture
async def wiki() -> AsyncIterator[Wiki]:
    wiki = Wiki()
    server = uvicorn.Server(uvicorn.Config(wiki.app(), port=0, log_config=None, timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run)  # signal handlers do no harm there
    thread.start()
    while not server.started:  # noqa: ASYNC110  # there is no event for it
        await asyncio.sleep(0.01)
    wiki.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp"
    yield wiki
    server.should_exit = True
    await asyncio.to_thread(thread.join, 5)


def calling(tool: str, **arguments: Any) -> Any:
    """Call the tool first, and then report the result."""

    def respond(body: dict[str, Any]) -> Any:
        blocks = [
            block
            for message in body["messages"]
            if isinstance(message["content"], list)
            for block in message["content"]
        ]
        results = [block["content"] for block in blocks if block["type"] == "tool_result"]
        return f"It said: {results[-1]}" if results else [{"type": "tool_use", "name": tool, "input": arguments}]

    return respond


def again(tool: str, arguments: dict[str, Any]) -> Any:
    """Repeat an approved call, and then say that it is done."""
    replies: list[Any] = [[{"type": "tool_use", "name": tool, "input": arguments}], "Gone."]

    def respond(_body: dict[str, Any]) -> Any:
        return replies.pop(0)

    return respond


def welcome(body: dict[str, Any]) -> Any:
    return "You are welcome."


async def test_claude_code_connects_to_the_server_and_calls_it(loopback: LoopbackServer, wiki: Wiki) -> None:
    """MODEL-83: the calls appear as native parts, and go along in the history."""
    loopback.respond = calling("mcp__wiki__ask", question="What?")
    async with ClaudeCodeProvider(env=loopback.env(), max_retries=0, pool=2) as provider:
        server = MCPServerTool(id="wiki", url=wiki.url, authorization_token="s3cret")
        agent = Agent(ClaudeCodeModel(provider=provider), capabilities=[NativeTool(server)])
        result = await agent.run("Ask the wiki.")
        assert "What? That." in result.output
        loopback.respond = welcome
        await agent.run("Thanks.", message_history=result.all_messages())
        assert len(provider.transport.pids) == 1
    call, answer, _ = result.response.parts
    assert isinstance(call, NativeToolCallPart)
    assert isinstance(answer, NativeToolReturnPart)
    assert call.args_as_dict() == {"action": "call_tool", "tool_name": "ask", "tool_args": {"question": "What?"}}
    assert (wiki.questions, wiki.authorization) == (["What?"], {"Bearer s3cret"})
    assert all("mcp_servers" not in body for body in loopback.requests)
    kinds = [block["type"] for message in loopback.requests[-1]["messages"] for block in message["content"]]
    assert kinds == ["text", "tool_use", "tool_result", "text", "text"]


@pytest.mark.worlds
async def test_only_allowed_tools_of_the_server_can_be_called(loopback: LoopbackServer, wiki: Wiki) -> None:
    """MODEL-59, MODEL-83"""
    loopback.respond = calling("mcp__wiki__delete", page="Home")
    async with ClaudeCodeProvider(env=loopback.env(), max_retries=0) as provider:
        server = MCPServerTool(id="wiki", url=wiki.url, allowed_tools=["ask"])
        agent = Agent(ClaudeCodeModel(provider=provider), capabilities=[NativeTool(server)])
        result = await agent.run("Delete the home page.")
        assert not wiki.questions
        assert "gone" not in result.output
        loopback.respond = calling("mcp__wiki__ask", question="What?")
        await agent.run("Ask the wiki.")
        assert wiki.questions == ["What?"]


@pytest.mark.worlds
@pytest.mark.parametrize("is_native", [False, True])
async def test_calls_of_the_servers_tools_can_wait_for_an_approval(
    loopback: LoopbackServer, wiki: Wiki, is_native: bool
) -> None:
    """MODEL-82: also if the server alone is named; approved calls run, and the API gets the CLI's tools alone."""
    loopback.respond = calling("mcp__wiki__delete", page="Home")
    policy = Policy([Rule("mcp__wiki__*", "ask")])
    if is_native:
        server = NativeTool(MCPServerTool(id="wiki", url=wiki.url))
        capabilities = [server, claude_code(tools=["mcp__wiki__delete"], policy=policy, approvals=True)]
    else:
        capabilities = [claude_code(mcp_servers={"wiki": HTTPServer(wiki.url)}, policy=policy, approvals=True)]
    async with ClaudeCodeProvider(env=loopback.env(), max_retries=0) as provider:
        agent = Agent(
            ClaudeCodeModel(provider=provider), capabilities=capabilities, output_type=[str, DeferredToolRequests]
        )
        first = await agent.run("Delete the home page.")
        assert isinstance(first.output, DeferredToolRequests)
        (call,) = first.output.approvals
        assert (call.tool_name, call.args_as_dict()) == ("mcp__wiki__delete", {"page": "Home"})
        assert not wiki.questions
        loopback.respond = again(call.tool_name, call.args_as_dict())
        results = DeferredToolResults(approvals={call.tool_call_id: True})
        second = await agent.run(message_history=first.all_messages(), deferred_tool_results=results)
    assert second.output == "Gone."
    assert wiki.questions == ["delete Home"]
    names = [sorted(tool["name"] for tool in body["tools"]) for body in loopback.requests]
    assert names == [["mcp__wiki__ask", "mcp__wiki__delete", "mcp__wiki__listen"]] * 3
