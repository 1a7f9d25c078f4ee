"""Calls with results from outside: external tools and approvals, immediate, later, repeated, or changed."""

from dataclasses import replace
from typing import Any

from pydantic_ai import (
    Agent,
    ApprovalRequired,
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    ModelRetry,
    RunContext,
    ToolApproved,
    ToolDefinition,
    ToolDenied,
    ToolFailed,
    ToolReturn,
)
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.run import AgentRunResult
from pydantic_ai.toolsets import ExternalToolset, FunctionToolset

from api_script import call, steps

from .scenario import HAIKU, SONNET, Theme

deferred = Theme("deferred")

Output = str | DeferredToolRequests
TWO_CALLS = [call("delete", path="a"), call("delete", path="b")]


def careful(model: AnthropicModel) -> Agent[object, Output]:
    """Return an agent whose deletions need an approval."""
    agent = Agent(model, output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def delete(path: str) -> str:
        """Delete a file."""
        return f"deleted {path}"

    @agent.tool_plain
    def look(path: str) -> str:
        """Look at a file."""
        return f"{path} is empty"

    return agent  # pyright: ignore[reportReturnType]  # a list of outputs is known by its parts alone


def requests_of(result: AgentRunResult[Output]) -> DeferredToolRequests:
    """Return a run's deferred requests."""
    assert isinstance(result.output, DeferredToolRequests)
    return result.output


def from_storage(result: AgentRunResult[Any]) -> list[ModelMessage]:
    """Return a run's messages after a round trip through storage."""
    return ModelMessagesTypeAdapter.validate_json(result.all_messages_json())


async def resumed(model: AnthropicModel, *answers: bool | ToolApproved | ToolDenied) -> object:
    """Run until approvals are requested, and resume from storage with the answers."""
    agent = careful(model)
    first = await agent.run("Clean up.")
    wanted = [part.tool_call_id for part in requests_of(first).approvals]
    results = DeferredToolResults(approvals=dict(zip(wanted, answers, strict=True)))
    return [first, await agent.run(message_history=from_storage(first), deferred_tool_results=results)]


@deferred.scenario(steps(TWO_CALLS, "Both gone."), on=(SONNET, HAIKU))
async def approvals_that_are_granted(model: AnthropicModel) -> object:
    """MODEL-55"""
    return await resumed(model, True, True)


@deferred.scenario(steps(TWO_CALLS, "One is left."))
async def approvals_of_which_one_is_denied(model: AnthropicModel) -> object:
    """MODEL-15, MODEL-55: a denial is a plain result."""
    return await resumed(model, ToolDenied("Keep it."), True)


@deferred.scenario(steps([call("delete", path="a")], "Another one gone."))
async def an_approval_with_other_arguments(model: AnthropicModel) -> object:
    """MODEL-55"""
    return await resumed(model, ToolApproved(override_args={"path": "c"}))


@deferred.scenario(steps([call("look", path="a"), call("delete", path="a"), call("look", path="b")], "Gone."))
async def an_approval_beside_tools_that_run_at_once(model: AnthropicModel) -> object:
    """MODEL-55, MODEL-57: the resumption has all returns, in call order."""
    return await resumed(model, True)


@deferred.scenario(steps([call("delete", path="a")], "Gone.", "And now?"))
async def a_history_that_is_resumed_twice(model: AnthropicModel) -> object:
    """MODEL-12, MODEL-55: whatever a process's state, each resumption gets the right answer."""
    agent = careful(model)
    first = await agent.run("Clean up.")
    [part] = requests_of(first).approvals
    ends: list[object] = []
    for answer in (True, ToolDenied("No."), True):
        results = DeferredToolResults(approvals={part.tool_call_id: answer})
        second = await agent.run(message_history=first.all_messages(), deferred_tool_results=results)
        ends += [second, await agent.run("Go on.", message_history=second.all_messages())]
    return ends


@deferred.scenario(steps([call("delete", path="a")], "Then not."))
async def a_new_prompt_beside_an_approval(model: AnthropicModel) -> object:
    """MODEL-16, MODEL-55"""
    agent = careful(model)
    first = await agent.run("Clean up.")
    [part] = requests_of(first).approvals
    results = DeferredToolResults(approvals={part.tool_call_id: False})
    return await agent.run("Stop it.", message_history=first.all_messages(), deferred_tool_results=results)


@deferred.scenario(steps([call("delete", path="a")], "Something else."), raises=UserError)
async def a_new_prompt_while_a_call_is_open(model: AnthropicModel) -> object:
    """MODEL-51, MODEL-55: the framework requires a result for the call first."""
    agent = careful(model)
    first = await agent.run("Clean up.")
    return await agent.run("Never mind.", message_history=first.all_messages(), deferred_tool_results=None)


@deferred.scenario(steps([call("transfer", amount=n) for n in (5, 500)], "Both."))
async def an_approval_that_depends_on_arguments(model: AnthropicModel) -> object:
    """MODEL-55"""
    agent = Agent(model, output_type=[str, DeferredToolRequests])

    @agent.tool
    def transfer(ctx: RunContext[object], amount: int) -> str:
        """Transfer money."""
        if amount > 100 and not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"limit": 100})
        return f"transferred {amount}"

    first = await agent.run("Pay.")
    [part] = requests_of(first).approvals  # pyright: ignore[reportArgumentType]  # a list of outputs is known by its parts
    results = DeferredToolResults(approvals={part.tool_call_id: True}, metadata={part.tool_call_id: {"by": "Ada"}})
    return [first, await agent.run(message_history=from_storage(first), deferred_tool_results=results)]


SEARCH = ToolDefinition(
    name="search_page",
    description="Search the page that the user sees.",
    parameters_json_schema={"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"]},
)


@deferred.scenario(steps([call("search_page", words=w) for w in "abcd"], "Found."), on=(SONNET, HAIKU))
async def external_tools(model: AnthropicModel) -> object:
    """MODEL-15, MODEL-55, MODEL-56: results, failures, retries and more, from outside."""
    agent = Agent(model, output_type=[str, DeferredToolRequests], toolsets=[ExternalToolset[object]([SEARCH])])
    first = await agent.run("Search.")
    assert isinstance(first.output, DeferredToolRequests)
    one, two, three, four = (part.tool_call_id for part in first.output.calls)
    calls = {
        one: {"hits": 3},
        two: ModelRetry("Use other words."),
        three: ToolReturn("a hit", content="It looks old.", metadata={"local": True}),
        four: ToolFailed("The page is gone."),
    }
    results = DeferredToolResults(calls=calls)
    return [first, await agent.run(message_history=from_storage(first), deferred_tool_results=results)]


@deferred.scenario(steps([call("start_job", name="big")], "The job is done."))
async def a_call_that_is_put_off(model: AnthropicModel) -> object:
    """MODEL-51, MODEL-55"""
    agent = Agent(model, output_type=[str, DeferredToolRequests])

    @agent.tool
    def start_job(ctx: RunContext[object], name: str) -> str:
        """Start a job."""
        raise CallDeferred(metadata={"job": name})

    first = await agent.run("Work.")
    assert isinstance(first.output, DeferredToolRequests)
    results = DeferredToolResults(calls={first.output.calls[0].tool_call_id: "42"})
    return [first, await agent.run(message_history=from_storage(first), deferred_tool_results=results)]


@deferred.scenario(steps([call("delete", path="a"), call("delete", path="b")], "One gone."))
async def approvals_that_a_handler_gives_within_the_run(model: AnthropicModel) -> object:
    """MODEL-55"""

    def decide(ctx: RunContext[object], requests: DeferredToolRequests) -> DeferredToolResults:
        return DeferredToolResults(approvals={part.tool_call_id: "a" in str(part.args) for part in requests.approvals})

    toolset = FunctionToolset[object]()

    @toolset.tool_plain
    def delete(path: str) -> str:
        """Delete a file."""
        return f"deleted {path}"

    return await Agent(
        model, toolsets=[toolset.approval_required()], capabilities=[HandleDeferredToolCalls[object](decide)]
    ).run("Clean up.")


@deferred.scenario(steps([call("delete", path="a")], "Gone."))
async def a_resumption_with_other_instructions_and_tools(model: AnthropicModel) -> object:
    """MODEL-12, MODEL-55: other changes in the meantime reach the API as well."""
    agent = careful(model)
    first = await agent.run("Clean up.")
    [part] = requests_of(first).approvals
    later = careful(model)

    @later.tool_plain
    def undo() -> str:
        """Undo the last step."""
        return "undone"

    history = [replace(message) for message in first.all_messages()]
    results = DeferredToolResults(approvals={part.tool_call_id: True})
    return await later.run(
        message_history=history,
        deferred_tool_results=results,
        instructions="Be quick.",
        model_settings={"max_tokens": 99},
    )
