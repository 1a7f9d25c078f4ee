"""Definitions for Claude Code that differ in one field, and what the model sees of each on a warm process.

A CLI keeps what it has once said of a tool under the tool's name and schema. So two callers' definitions with equal
names and other words are the worst case for a process that serves one after another.
"""

import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, cast

from claude_agent_sdk import AgentDefinition, ClaudeAgentOptions
from mcp.server.lowlevel import Server
from mcp.types import (
    CallToolResult,
    ListPromptsResult,
    ListResourcesResult,
    ListToolsResult,
    Prompt,
    Resource,
    TextContent,
    Tool,
    ToolAnnotations,
)

from cc_loopback import JsonObject, LoopbackServer
from cc_session import PoolLimits, Session, SessionPool, TurnError

TEXT = {"type": "string", "description": "A text."}
NUMBER = {"type": "number"}


@dataclass(frozen=True, kw_only=True)
class Definitions:
    """An in-process MCP server's definitions, and options."""

    tool: Tool = field(
        default_factory=lambda: Tool(
            name="look",
            description="Looks for Alice.",
            input_schema={"type": "object", "properties": {"text": TEXT, "number": NUMBER}},
        )
    )
    server: dict[str, str] = field(default_factory=dict[str, str])
    name: str = "own"
    prompt: str | None = None
    resource: str | None = None
    options: dict[str, Any] = field(default_factory=dict[str, Any])

    def serve(self) -> Server[Any]:
        """Return a new server with these definitions."""

        async def tools(*_: object) -> ListToolsResult:
            return ListToolsResult(tools=[self.tool])

        async def call(*_: object) -> CallToolResult:
            return CallToolResult(content=[TextContent(type="text", text=str(self.tool.description))])

        async def prompts(*_: object) -> ListPromptsResult:
            return ListPromptsResult(prompts=[Prompt(name="ask", description=self.prompt)])

        async def resources(*_: object) -> ListResourcesResult:
            return ListResourcesResult(resources=[Resource(name="page", uri="page://one", description=self.resource)])

        return Server(
            "definitions",
            **cast("dict[str, Any]", self.server),
            on_list_tools=tools,
            on_call_tool=call,
            on_list_prompts=prompts if self.prompt else None,
            on_list_resources=resources if self.resource else None,
        )


BASE = Definitions()


def _tool(**changes: Any) -> Definitions:
    return replace(BASE, tool=BASE.tool.model_copy(update=changes))


def _agent(description: str) -> Definitions:
    agents = {"helper": AgentDefinition(description=description, prompt="Help.")}
    return replace(BASE, options={"agents": agents, "tools": ["Agent"]})


def _output(values: list[object]) -> Definitions:
    schema = {"type": "object", "properties": {"answer": {"enum": values}}}
    return replace(BASE, options={"output_format": {"type": "json_schema", "schema": schema}, "max_turns": 3})


# Each differs from the one before in the field that is its name; some are two values of a field.
VARIANTS: dict[str, Definitions] = {
    "nothing": BASE,
    "description": _tool(description="Looks for Bob."),
    "title": _tool(title="Bob"),
    "annotations' title": _tool(annotations=ToolAnnotations(title="Bob")),
    "read-only": _tool(annotations=ToolAnnotations(read_only_hint=True)),
    "output schema": _tool(output_schema={"type": "object", "properties": {"bob": TEXT}}),
    "always loaded": _tool(meta={"anthropic/alwaysLoad": True}),
    "search hint": _tool(meta={"anthropic/searchHint": "bob"}),
    "order of the schema": _tool(input_schema={"type": "object", "properties": {"number": NUMBER, "text": TEXT}}),
    "schema": _tool(input_schema={"type": "object", "properties": {"text": NUMBER}}),
    "instructions": replace(BASE, server={"instructions": "Serve Bob."}),
    "server's title": replace(BASE, server={"title": "Bob's"}),
    "prompt": replace(BASE, prompt="Ask Bob."),
    "resource": replace(BASE, resource="Bob's page."),
    "server's name": replace(BASE, name="bobs"),
    "sub-agent": _agent("Helps Alice."),
    "sub-agent's description": _agent("Helps Bob."),
    "structured output": _output([False, True]),
    "structured output of another type": _output([0, 1]),
}


def respond(body: JsonObject) -> Any:
    """Call the tool, or give the structured answer, and end the turn."""
    if "tool_result" in json.dumps(body["messages"][-1]):
        return "Done."
    names = [tool["name"] for tool in body.get("tools", [])]
    if "StructuredOutput" in names:
        return [{"type": "tool_use", "id": "toolu_1", "name": "StructuredOutput", "input": {"answer": None}}]
    name = next((name for name in names if name.startswith("mcp__")), None)
    return [{"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}] if name else "Done."


async def differences(
    api: LoopbackServer,
    options: ClaudeAgentOptions,
    names: Callable[[str], bool] = lambda _name: True,
    *,
    answer: Callable[[JsonObject], Any] = respond,
) -> tuple[list[str], int]:
    """Return the variants for which a pool's only process sends other requests than a new one, and its starts."""
    api.respond = answer
    wrong: list[str] = []
    async with SessionPool(options, limits=PoolLimits(size=1, prewarm=0)) as pool:
        for name, variant in VARIANTS.items():
            if not names(name):
                continue
            changed = replace(options, **variant.options)
            async with await Session.open(changed, mcp_servers={variant.name: variant.serve()}) as session:
                fresh = await _requests(api, session)
            async with pool.lease(**cast(Any, variant.options), mcp_servers={variant.name: variant.serve()}) as session:
                warm = await _requests(api, session)
            if warm != fresh:
                wrong.append(name)
        return wrong, pool.stats().starts


async def _requests(api: LoopbackServer, session: Session) -> str:
    api.requests.clear()
    with suppress(TurnError):  # a structured answer may be refused; what counts is what the model was sent
        await session.run("Go.")
    bodies = [{name: value for name, value in body.items() if name != "metadata"} for body in api.requests]
    # With a token the CLI reports its folder, and old ones a number of the request.
    return re.sub(r"(cc-session-|cch=)\w+", "…", json.dumps(bodies))
