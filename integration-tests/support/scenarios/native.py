"""Native tools, which run at the provider: they reach the API unchanged, and so do their calls and results."""

from dataclasses import replace
from typing import Any

from pydantic_ai import Agent, Tool
from pydantic_ai.capabilities import NativeTool, ToolSearch
from pydantic_ai.messages import ModelMessage, ModelResponse, UploadedFile
from pydantic_ai.models import ModelRequestContext, ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.native_tools import CodeExecutionTool, MemoryTool, WebFetchTool, WebSearchTool

from api_script import Block, Body, Reply, call, steps, stopped, text

from .scenario import HAIKU, OPUS, SONNET, Theme, continued
from .streams import events_of

native = Theme("native")


def server_call(tool: str, /, id: str, **arguments: Any) -> Block:
    return {"type": "server_tool_use", "id": id, "name": tool, "input": arguments}


FOUND: Block = {
    "type": "web_search_result",
    "url": "https://weather.example/paris",
    "title": "Weather in Paris",
    "encrypted_content": "ZW5jcnlwdGVk",
    "page_age": "1 day ago",
}
CITED: Block = {
    "type": "text",
    "text": "It rains in Paris.",
    "citations": [
        {
            "type": "web_search_result_location",
            "url": FOUND["url"],
            "title": FOUND["title"],
            "cited_text": "Rain all day.",
            "encrypted_index": "aW5kZXg=",
        }
    ],
}
SEARCH: list[Block] = [
    text("I will search. "),
    server_call("web_search", "srvtoolu_1", query="weather in Paris"),
    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [FOUND]},
    CITED,
]


@native.scenario(steps(SEARCH, "You are welcome."), on=(SONNET, HAIKU))
async def a_search_of_the_web(model: AnthropicModel) -> object:
    """MODEL-22, MODEL-58, MODEL-60, MODEL-83: with a continued conversation."""
    search = WebSearchTool(max_uses=3, allowed_domains=["weather.example"], user_location={"city": "Paris"})
    return await continued(Agent(model, capabilities=[NativeTool(search)]), "How is the weather?", "Thanks.")


@native.scenario(steps(SEARCH), on=(SONNET, HAIKU))
async def events_of_a_search(model: AnthropicModel) -> object:
    """MODEL-42, MODEL-60"""
    return await events_of(Agent(model, capabilities=[NativeTool(WebSearchTool())]), "How is the weather?")


@native.scenario(
    steps(
        [
            server_call("web_search", "srvtoolu_2", query="weather"),
            {
                "type": "web_search_tool_result",
                "tool_use_id": "srvtoolu_2",
                "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"},
            },
            text("I could not search."),
        ],
        "Never mind.",
    )
)
async def a_search_that_fails(model: AnthropicModel) -> object:
    """MODEL-59, MODEL-60"""
    return await continued(
        Agent(model, capabilities=[NativeTool(WebSearchTool(max_uses=1))]), "How is the weather?", "Sorry."
    )


PAGE: Block = {
    "type": "web_fetch_tool_result",
    "tool_use_id": "srvtoolu_3",
    "content": {
        "type": "web_fetch_result",
        "url": "https://weather.example/paris",
        "retrieved_at": "2026-01-01T00:00:00Z",
        "content": {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "Rain all day."},
            "title": "Weather",
            "citations": {"enabled": True},
        },
    },
}


@native.scenario(
    steps(
        [server_call("web_fetch", "srvtoolu_3", url="https://weather.example/paris"), PAGE, text("Rain.")], "Welcome."
    )
)
async def a_page_of_the_web(model: AnthropicModel) -> object:
    """MODEL-60, MODEL-83"""
    fetch = WebFetchTool(max_uses=2, allowed_domains=["weather.example"], enable_citations=True)
    return await continued(
        Agent(model, capabilities=[NativeTool(fetch)]), "Read https://weather.example/paris", "Thanks."
    )


RAN: list[Block] = [
    server_call("bash_code_execution", "srvtoolu_4", command="echo $((6 * 7))"),
    {
        "type": "bash_code_execution_tool_result",
        "tool_use_id": "srvtoolu_4",
        "content": {
            "type": "bash_code_execution_result",
            "stdout": "42\n",
            "stderr": "",
            "return_code": 0,
            "content": [],
        },
    },
]
CONTAINER = {"id": "container_1", "expires_at": "2030-01-01T00:00:00Z"}


def in_a_container(body: Body) -> Reply:
    """Run the code, and confirm it on the next prompt."""
    if any(message["role"] == "assistant" for message in body["messages"]):
        return stopped("end_turn", text("Still 42."), container=CONTAINER)
    return stopped("end_turn", *RAN, text("42."), container=CONTAINER)


@native.scenario(in_a_container)
async def code_that_the_provider_runs(model: AnthropicModel) -> object:
    """MODEL-60, MODEL-83: the next request has the first answer's container."""
    return await continued(Agent(model, capabilities=[NativeTool(CodeExecutionTool())]), "What is 6 * 7?", "Sure?")


@native.scenario(in_a_container)
async def code_with_a_file_that_was_uploaded(model: AnthropicModel) -> object:
    """MODEL-13, MODEL-60: the code has the file, whose id refers to a file at the provider."""
    code = CodeExecutionTool(files=[UploadedFile("file_123", provider_name="anthropic")])
    return await continued(Agent(model, capabilities=[NativeTool(code)]), "What is the sum?", "Sure?")


@native.scenario(in_a_container)
async def code_in_a_history_of_the_direct_api(model: AnthropicModel) -> object:
    """MODEL-60, MODEL-183: its calls, results and container go along."""
    agent = Agent(model, capabilities=[NativeTool(CodeExecutionTool())])
    history: list[ModelMessage] = []
    for message in (await agent.run("What is 6 * 7?")).all_messages():
        if isinstance(message, ModelResponse):
            parts = [replace(part, provider_name=part.provider_name and "anthropic") for part in message.parts]
            message = replace(message, provider_name="anthropic", parts=parts)
        history.append(message)
    return await agent.run("Sure?", message_history=history)


def pausing(body: Body) -> Reply:
    """Pause within a call, and continue from there."""
    if body["messages"][-1]["role"] == "assistant":
        return stopped("end_turn", RAN[1], text("42."), container=CONTAINER)
    return stopped("pause_turn", text("I will run it."), RAN[0], container=CONTAINER)


@native.scenario(pausing)
async def an_answer_that_pauses(model: AnthropicModel) -> object:
    """MODEL-36, MODEL-60: the framework sends the call back, and the API continues."""
    return await Agent(model, capabilities=[NativeTool(CodeExecutionTool())]).run("What is 6 * 7?")


@native.scenario(steps([call("memory", command="view", path="/memories")], "Nothing yet."))
async def a_memory_that_the_agent_keeps(model: AnthropicModel) -> object:
    """MODEL-58: the provider describes the tool, and the agent runs it."""

    def memory(command: str, path: str) -> str:
        """Remember things."""
        return f"{command} {path}: empty"

    return await Agent(model, tools=[memory], capabilities=[NativeTool(MemoryTool())]).run("What do you know?")


@native.scenario(steps(SEARCH[1:3] + [call("note", words="rain")], "Noted."), on=(SONNET, HAIKU))
async def beside_a_tool_of_the_agent(model: AnthropicModel) -> object:
    """MODEL-52, MODEL-60: an answer with both kinds of calls."""

    def note(words: str) -> str:
        """Note it."""
        return f"noted: {words}"

    agent = Agent(model, tools=[note], capabilities=[NativeTool(WebSearchTool())])
    return await agent.run("Note the weather.")


@native.scenario(
    steps(
        [
            server_call("tool_search_tool_bm25", "srvtoolu_5", query="negate"),
            {
                "type": "tool_search_tool_result",
                "tool_use_id": "srvtoolu_5",
                "content": {
                    "type": "tool_search_tool_search_result",
                    "tool_references": [{"type": "tool_reference", "tool_name": "negate"}],
                },
            },
            call("negate", a=3),
        ],
        "Minus three.",
    )
)
async def tools_that_the_provider_searches_for(model: AnthropicModel) -> object:
    """MODEL-53, MODEL-56"""

    def negate(a: int) -> int:
        """Negate a number."""
        return -a

    hidden = [Tool(negate, defer_loading=True)]
    return await Agent(model, tools=hidden, capabilities=[ToolSearch[object](strategy="bm25")]).run("Negate three.")


SUMMARY = stopped("compaction", {"type": "compaction", "content": "They greeted each other.", "signature": "c2lnbmVk"})


def summing_up(body: Body) -> Reply:
    """Answer a request for a summary with a summary, and others with a text."""
    return SUMMARY if "compaction" in body else "Once more."


@native.scenario(summing_up, on=OPUS)
async def a_summary_that_is_asked_for(model: AnthropicModel) -> object:
    """MODEL-23: with a continued conversation."""
    first = await Agent(model).run("Hello.")
    context = ModelRequestContext(
        model=model,
        messages=first.all_messages(),
        model_settings=None,
        model_request_parameters=ModelRequestParameters(),
    )
    summary = await model.compact_messages(context, instructions="Keep the names.")
    return [summary, await Agent(model).run("Again.", message_history=[*context.messages, summary])]
