"""A new interpreter can answer every stored request."""

import copy
import json
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread
from pydantic import TypeAdapter
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, NativeOutput, RunContext, ToolOutput
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from api_script import USAGE, call, text, thought
from both_ways import comparable, comparable_messages
from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel
from prepared_python import python
from scenarios.outputs import PARIS, PARIS_JSON, City
from scenarios.tools import lucky_number

pytestmark = pytest.mark.worlds

SCRIPT = Path(__file__).parent / "support" / "answer_recorded.py"
PARAMETERS = TypeAdapter(ModelRequestParameters)
# Nine requests start a CLI each: some six seconds alone, and several times as long on a busy machine.
_SUBPROCESS_SECONDS = 110


class Recording(WrapperModel):
    """Records each request, as it would be stored, and the result."""

    def __init__(self, model: ClaudeCodeModel) -> None:
        super().__init__(model)
        self.requests: list[dict[str, Any]] = []
        self.responses: list[ModelMessage] = []

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        request = {
            "model": self.model_name,
            "messages": ModelMessagesTypeAdapter.dump_python(messages, mode="json"),
            "settings": model_settings,
            "parameters": PARAMETERS.dump_python(model_request_parameters, mode="json"),
        }
        self.requests.append(request)
        response = await super().request(messages, model_settings, model_request_parameters)
        self.responses.append(copy.deepcopy(response))  # the framework adds price and ids to the other response
        return response


def respond(body: dict[str, Any]) -> Any:
    """Call the tool once, and then answer in the requested format; deterministic for a body."""
    names = [tool["name"] for tool in body.get("tools", [])]
    has_called = "tool_result" in str(body["messages"][-1])
    number = len(body["messages"])
    content: Any = [thought("Hm.", "c2ln"), text("So.")]
    if "lucky_number" in names and not has_called:
        content = [thought("Hm.", "c2ln"), {**call("lucky_number", low=1, high=3), "id": f"toolu_{number}"}]
    elif "final_result" in names:
        content = [{**call("final_result", **PARIS), "id": f"toolu_{number}"}]
    elif "format" in body.get("output_config", {}):
        content = [text(PARIS_JSON)]
    return {"content": content, "usage": USAGE, "id": f"msg_{number}"}


async def tools_and_a_second_run(model: Recording) -> None:
    agent = Agent(model, tools=[lucky_number], instructions="Be brief.", model_settings={"thinking": "low"})
    first = await agent.run("A number.")
    await agent.run("Thanks.", message_history=first.all_messages())


async def outputs(model: Recording) -> None:
    await Agent(model, output_type=NativeOutput(City)).run("A city.")
    first = await Agent(model, output_type=ToolOutput(City)).run("A city.")
    await Agent(model, output_type=ToolOutput(City)).run("Another.", message_history=first.all_messages())


async def an_approval_and_changing_instructions(model: Recording) -> None:
    agent = Agent(model, output_type=[str, DeferredToolRequests])
    agent.tool_plain(requires_approval=True)(lucky_number)

    @agent.instructions
    def by_step(ctx: RunContext[object]) -> str:
        return f"Step {ctx.run_step}, {len(ctx.messages)} messages."

    first = await agent.run("A number.")
    approved = DeferredToolResults(approvals={"toolu_1": True})
    await agent.run(
        message_history=first.all_messages(), deferred_tool_results=approved, model_settings={"max_tokens": 99}
    )


@pytest.mark.slow
@pytest.mark.timeout(_SUBPROCESS_SECONDS + 30)
async def test_a_new_interpreter_gives_the_same_answers(loopback: LoopbackServer, model: ClaudeCodeModel) -> None:
    """MODEL-12, MODEL-55, MODEL-67, ARCH-04: its cold requests equal the requests on warm processes."""
    loopback.respond = respond
    recording = Recording(model)
    runs: list[Callable[[Recording], Awaitable[None]]]
    runs = [tools_and_a_second_run, outputs, an_approval_and_changing_instructions]
    for run in runs:
        await run(recording)
    warm = comparable([*loopback.requests])
    loopback.requests.clear()

    stored = json.dumps({"env": loopback.env(), "requests": recording.requests})
    answered = await to_thread.run_sync(
        lambda: subprocess.run(
            [python(), SCRIPT], input=stored, capture_output=True, text=True, timeout=_SUBPROCESS_SECONDS
        )
    )

    assert answered.returncode == 0, answered.stderr
    assert comparable([*loopback.requests]) == warm
    responses = ModelMessagesTypeAdapter.validate_json(answered.stdout)
    assert comparable_messages(responses) == comparable_messages(recording.responses)
    assert len(responses) == len(warm) == 9
