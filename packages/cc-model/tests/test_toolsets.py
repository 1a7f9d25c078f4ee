"""Agent whose tools the CLI calls in its own loop, over either transport."""

import asyncio
import threading
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, Message, ResultMessage
from pydantic import BaseModel
from pydantic_ai import Agent, ApprovalRequired, ModelRetry, RunContext, ToolOutput
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    ModelRequest,
    NativeToolCallPart,
    NativeToolReturnPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolDefinition
from pydantic_ai.toolsets import FunctionToolset

from api_script import call
from cc_ipc import TransportUnavailableError
from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel, ToolNotFoundError, ToolsetNotRegisteredError
from cc_types import ClaudeCodeError

Transport = Literal["sdk", "stdio"]
HELLO = ModelRequest(parts=[UserPromptPart("Hello.")])


# Module scope: tests with equal tools run in sequence, and share processes.
@pytest.fixture(scope="module", params=["sdk", pytest.param("stdio", marks=pytest.mark.slow)])
def transport(request: pytest.FixtureRequest) -> Transport:
    return request.param


@dataclass
class Bank:
    balance: int
    loop: asyncio.AbstractEventLoop | None = None
    thread: str = ""


class City(BaseModel):
    city: str


def bank_agent(model: ClaudeCodeModel, transport: Transport) -> Agent[Bank, str]:
    agent = Agent(model, deps_type=Bank)

    @agent.tool
    async def balance(ctx: RunContext[Bank], currency: str) -> dict[str, Any]:
        ctx.deps.loop, ctx.deps.thread = asyncio.get_running_loop(), threading.current_thread().name
        return {"balance": ctx.deps.balance, "currency": currency, "call": ctx.tool_call_id}

    model.set_agent_toolsets(agent.toolsets, transport=transport)
    return agent


def parameters(*names: str) -> ModelRequestParameters:
    schema: dict[str, Any] = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    tools = [ToolDefinition(name=name, description=name, parameters_json_schema=schema) for name in names]
    return ModelRequestParameters(function_tools=tools)


def double(x: int) -> int:
    """Double a number."""
    return 2 * x


async def test_tools_run_in_the_agents_loop_and_are_native_parts(
    model: ClaudeCodeModel, shared_api: LoopbackServer, transport: Transport
) -> None:
    """IPC-P-50, IPC-P-51, IPC-P-56"""
    streaming = Bank(balance=41)
    async with bank_agent(model, transport).run_stream("How much?", deps=streaming) as stream:
        assert '"balance":41' in await stream.get_output()
    assert streaming.loop is asyncio.get_running_loop()
    bank = Bank(balance=42)
    result = await bank_agent(model, transport).run("How much?", deps=bank)
    assert '"balance":42' in result.output
    assert bank.loop is asyncio.get_running_loop()
    assert bank.thread == threading.current_thread().name
    assert [tool["name"] for tool in shared_api.requests[0]["tools"]] == ["mcp__pydantic_tools__balance"]
    assert result.usage.requests == 2

    _, response = result.all_messages()
    assert [type(part) for part in response.parts] == [TextPart, NativeToolCallPart, NativeToolReturnPart, TextPart]
    call, answer = response.parts[1:3]
    assert isinstance(call, NativeToolCallPart)
    assert isinstance(answer, NativeToolReturnPart)
    assert call.tool_name == answer.tool_name == "mcp_server:pydantic_tools"
    assert call.tool_call_id == answer.tool_call_id
    assert call.tool_call_id in str(answer.content)


async def test_outputs_are_the_agents_also_when_the_cli_runs_its_tools(
    model: ClaudeCodeModel, transport: Transport
) -> None:
    agent = bank_agent(model, transport)
    result = await agent.run("Where?", deps=Bank(balance=42), output_type=ToolOutput(City))
    assert result.output == City(city="Paris")
    kinds = [part.part_kind for message in result.all_messages() for part in message.parts]
    assert kinds.count("builtin-tool-call") == 1
    assert kinds.count("tool-call") == 1


async def test_runs_from_several_loops_at_once_do_not_mix(model: ClaudeCodeModel, transport: Transport) -> None:
    agent = bank_agent(model, transport)

    def run(balance: int) -> tuple[str, Bank]:
        bank = Bank(balance=balance)
        return asyncio.run(agent.run("How much?", deps=bank)).output, bank

    async with asyncio.TaskGroup() as group:
        runs = [group.create_task(asyncio.to_thread(run, balance)) for balance in range(100, 106)]
    for balance, run_ in enumerate(runs, 100):
        output, bank = run_.result()
        assert f'"balance":{balance}' in output
        assert bank.thread != threading.current_thread().name


async def test_the_model_retries_a_call_and_retries_are_counted(model: ClaudeCodeModel, transport: Transport) -> None:
    tries: list[int] = []
    agent = Agent(model, retries=3)

    @agent.tool
    def fussy(ctx: RunContext[object], x: int) -> str:
        tries.append(ctx.retry)
        if ctx.retry < 2:
            raise ModelRetry("not yet")
        return "now"

    model.set_agent_toolsets(agent.toolsets, transport=transport)
    result = await agent.run("Go.")
    assert tries == [0, 1, 2]
    returned = [str(part) for part in result.response.parts if isinstance(part, NativeToolReturnPart)]
    assert ["'is_error': True" in part for part in returned] == [True, True, False]
    assert "not yet" in returned[0]


async def test_a_call_that_needs_an_approval_ends_the_loop(
    model: ClaudeCodeModel, shared_api: LoopbackServer, transport: Transport
) -> None:
    """IPC-P-59: with all calls beside it, as in the agent's loop; the approved calls run in the next run."""
    ran: list[str] = []
    agent = Agent(model, output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def pay(x: int) -> str:
        ran.append(f"pay {x}")
        return "paid"

    @agent.tool_plain
    def look(x: int) -> str:
        ran.append(f"look {x}")
        return "seen"

    def respond(body: dict[str, Any]) -> Any:
        names = {offered["name"].rpartition("__")[2]: offered["name"] for offered in body["tools"]}
        is_answered = "tool_result" in str(body["messages"][-1])
        return "Done." if is_answered else [call(names["look"], x=1), call(names["pay"], x=2), call(names["look"], x=3)]

    shared_api.respond = respond
    model.set_agent_toolsets(agent.toolsets, transport=transport)
    first = await agent.run("Pay.")
    assert isinstance(first.output, DeferredToolRequests)
    [approval] = first.output.approvals
    assert (approval.tool_name, sorted(ran)) == ("pay", ["look 1", "look 3"])
    results = DeferredToolResults(approvals={approval.tool_call_id: True})
    second = await agent.run(message_history=first.all_messages(), deferred_tool_results=results)
    assert (second.output, ran[2:]) == ("Done.", ["pay 2"])
    texts = [block["content"][0]["text"] for block in shared_api.requests[-1]["messages"][-1]["content"]]
    assert texts == ["seen", "paid", "seen"]


async def test_a_tool_that_itself_asks_for_an_approval_fails(model: ClaudeCodeModel, transport: Transport) -> None:
    agent = Agent(model)

    @agent.tool_plain
    def pay(x: int) -> str:
        raise ApprovalRequired(metadata={"x": x})

    model.set_agent_toolsets(agent.toolsets, transport=transport)
    result = await agent.run("Pay.")
    assert "was not run" in str(result.response.parts)


@dataclass
class Guard(AbstractCapability[Any]):
    """Records, changes and refuses calls, and has a tool of its own."""

    log: list[str]

    async def before_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any]
    ) -> dict[str, Any]:
        self.log.append(f"{call.tool_name} {args['x']}")
        if args["x"] == 13:
            raise ModelRetry("unlucky")
        return {"x": args["x"] + 100}

    def get_toolset(self) -> FunctionToolset[Any]:
        return FunctionToolset([triple])


@pytest.mark.parametrize("mode", ["parallel", "sequential"])
async def test_tools_run_with_capabilities_and_order_of_the_run(
    mode: Literal["parallel", "sequential"], model: ClaudeCodeModel, shared_api: LoopbackServer, transport: Transport
) -> None:
    """IPC-P-51: also those of a capability, and those of one run."""

    async def slow(x: int) -> int:
        log.append(f"begins {x}")
        await asyncio.sleep(0.02)
        log.append(f"ends {x}")
        return x

    def respond(body: dict[str, Any]) -> Any:
        names = {offered["name"].rpartition("__")[2]: offered["name"] for offered in body["tools"]}
        step = sum(message["role"] == "assistant" for message in body["messages"])
        return [[call(names[tool], x=x) for tool, x in calls] for calls in steps][step] if step < 3 else "Done."

    async def outcome() -> list[str]:
        log.clear()
        with agent.parallel_tool_call_execution_mode(mode):
            result = await agent.run("Go.", toolsets=[FunctionToolset([double])])
        parts = [part for message in result.all_messages() for part in message.parts]
        returned = str([part for part in parts if isinstance(part, (NativeToolReturnPart, ToolReturnPart))])
        assert [number for number in ("101", "102", "303", "208") if number not in returned] == []
        return [*log] if mode == "sequential" else sorted(log)

    log: list[str] = []
    steps = [[("slow", 1), ("slow", 2)], [("slow", 13)], [("triple", 1), ("double", 4)]]
    shared_api.respond = respond
    agent = Agent(model, tools=[slow], capabilities=[Guard(log)])
    expected = await outcome()
    model.set_agent_toolsets(agent.toolsets, transport=transport)
    assert await outcome() == expected


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_a_cancelled_run_waits_for_the_end_of_its_tools(
    is_streamed: bool, model: ClaudeCodeModel, transport: Transport
) -> None:
    """MSG-65: as in the agent's loop."""

    async def slow() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            log.append("cleans")
            await asyncio.sleep(0.05)
            log.append("clean")

    async def run() -> None:
        if not is_streamed:
            await agent.run("Go.")
            return
        async with agent.run_stream("Go.") as stream:
            await stream.get_output()

    begun, log = asyncio.Event(), list[str]()
    agent = Agent(model, tools=[slow])
    model.set_agent_toolsets(agent.toolsets, transport=transport)
    task = asyncio.ensure_future(run())
    await asyncio.wait_for(begun.wait(), 30)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    assert log == ["cleans", "clean"]


async def test_only_tools_that_the_request_offers_can_be_called(
    model: ClaudeCodeModel, shared_api: LoopbackServer, transport: Transport
) -> None:
    """IPC-P-52"""
    model.set_agent_toolsets(FunctionToolset([double, triple]), transport=transport)
    response = await model.request([HELLO], None, parameters("double"))
    assert [tool["name"] for tool in shared_api.requests[0]["tools"]] == ["mcp__pydantic_tools__double"]
    called = [part.args_as_dict()["tool_name"] for part in response.parts if isinstance(part, NativeToolCallPart)]
    assert called == ["double"]


def triple(x: int) -> int:
    """Triple a number."""
    return 3 * x


async def test_a_tool_of_no_toolset_is_an_error(model: ClaudeCodeModel, shared_api: LoopbackServer) -> None:
    """IPC-P-54"""
    model.set_agent_toolsets(FunctionToolset([double]))
    for request in (model.request, model.request_with_metadata):
        with pytest.raises(ToolNotFoundError, match="quadruple") as caught:
            await request([HELLO], None, parameters("double", "quadruple"))
        assert caught.value.known == ("double",)
    assert not shared_api.requests


async def test_messages_with_tools_need_toolsets_that_run_them(model: ClaudeCodeModel) -> None:
    """IPC-P-54"""
    with pytest.raises(ToolsetNotRegisteredError, match="set_agent_toolsets") as caught:
        await anext(model.stream_messages([HELLO], None, parameters("double")))
    assert caught.value.tools == ("double",)
    assert isinstance(caught.value, ClaudeCodeError)


async def test_a_request_with_metadata_has_the_clis_report(model: ClaudeCodeModel, transport: Transport) -> None:
    """IPC-P-53: a call to the agent's own tools is not an error."""
    response, cli = await model.request_with_metadata([HELLO], None, parameters("double"))
    assert response.tool_calls
    assert (cli.is_error, cli.subtype) == (False, "success")
    assert cli.usage.output_tokens == response.usage.output_tokens
    model.set_agent_toolsets(FunctionToolset([double]), transport=transport)
    response, cli = await model.request_with_metadata([HELLO], None, parameters("double"))
    assert cli.result == response.parts[-1].content if isinstance(response.parts[-1], TextPart) else False
    assert (cli.is_error, cli.subtype, cli.num_turns) == (False, "success", 2)
    assert cli.usage.input_tokens == response.usage.input_tokens
    assert cli.total_cost_usd


async def test_messages_are_streamed_up_to_the_result(model: ClaudeCodeModel, transport: Transport) -> None:
    """IPC-P-53"""
    model.set_agent_toolsets(FunctionToolset([double]), transport=transport)
    messages: list[Message] = [message async for message in model.stream_messages([HELLO], None, parameters("double"))]
    names = [type(message).__name__ for message in messages]
    assert isinstance(messages[-1], ResultMessage)
    assert names.count("ResultMessage") == 1
    assert "UserMessage" in names


async def test_leaving_a_stream_of_messages_cancels_its_request(model: ClaudeCodeModel, transport: Transport) -> None:
    """IPC-P-53"""
    has_begun, was_cancelled = asyncio.Event(), asyncio.Event()

    async def wait(x: int) -> int:
        """Wait for ever."""
        has_begun.set()
        try:
            return await asyncio.get_running_loop().create_future()
        finally:
            was_cancelled.set()

    model.set_agent_toolsets(FunctionToolset([wait]), transport=transport)
    stream = model.stream_messages([HELLO], None, parameters("wait"))
    async for message in stream:
        if type(message).__name__ == "AssistantMessage" and "ToolUse" in str(message):
            break
    async with asyncio.timeout(20):
        await has_begun.wait()  # the model has called it, and the CLI is about to
        await stream.aclose()
        await was_cancelled.wait()
        model.set_agent_toolsets(None)
        assert (await model.request([HELLO], None, parameters())).text


@pytest.mark.worlds
async def test_an_in_process_server_serves_a_client_of_the_callers(
    model: ClaudeCodeModel, shared_api: LoopbackServer
) -> None:
    """IPC-P-50"""
    model.set_agent_toolsets(FunctionToolset([double]), server_name="mine", transport="sdk")
    options = ClaudeAgentOptions(
        mcp_servers=model.get_mcp_servers(),
        tools=[],
        allowed_tools=["mcp__mine"],
        setting_sources=[],
        env=shared_api.env(),
    )
    answer = ""
    async with ClaudeSDKClient(options) as client:
        await client.query("Double it.")
        answer = str([message async for message in client.receive_response()])
    assert "mcp__mine__double returned: 2" in answer


async def test_the_configuration_of_a_bridge_starts_its_module(model: ClaudeCodeModel) -> None:
    model.set_agent_toolsets([], transport="stdio")
    (server,) = model.get_mcp_servers().values()
    assert server.get("type") == "stdio"
    assert "cc_ipc_bridge" in str(server.get("args"))


async def test_an_invalid_server_name_is_refused_at_once(model: ClaudeCodeModel) -> None:
    for name in ("", "my tools", "a__b"):
        with pytest.raises(ValueError, match="MCP server"):
            model.set_agent_toolsets([], server_name=name)


async def test_a_missing_transport_is_refused_at_once(model: ClaudeCodeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """IPC-P-55"""
    monkeypatch.delattr("socket.AF_UNIX")
    with pytest.raises(TransportUnavailableError):
        model.set_agent_toolsets([], transport="stdio")
