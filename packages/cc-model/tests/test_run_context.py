"""The only private part of pydantic-ai in use must still give the run behind a request."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.models.test import TestModel
from pydantic_ai.settings import ModelSettings

from cc_model.run_context import run_context_for


class Curious(TestModel):
    """Records each request's context."""

    def __init__(self) -> None:
        super().__init__()
        self.contexts: list[RunContext[Any]] = []

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        self.contexts.append(run_context_for(self))
        return await super().request(messages, model_settings, model_request_parameters)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        self.contexts.append(run_context_for(self, run_context))
        async with super().request_stream(messages, model_settings, model_request_parameters, run_context) as response:
            yield response


async def test_a_request_knows_the_run_that_makes_it() -> None:
    model = Curious()
    agent = Agent(model, deps_type=str, retries=5)
    await agent.run("Hello.", deps="of the run")
    async with agent.run_stream("Hello.", deps="of the stream") as result:
        await result.get_output()
    assert [context.deps for context in model.contexts] == ["of the run", "of the stream"]
    assert [context.max_retries for context in model.contexts] == [5, 5]


def test_outside_of_a_run_there_are_no_dependencies() -> None:
    model = TestModel()
    context = run_context_for(model)
    assert context.deps is None
    assert context.model is model
