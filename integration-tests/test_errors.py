"""Each failure gives an error class known to users of pydantic-ai."""

from collections.abc import AsyncIterator

import anyio
import pytest
from anthropic import AsyncAnthropic
from pydantic_ai import Agent
from pydantic_ai.exceptions import (
    ModelHTTPError,
    ModelOverloadedError,
)
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider

from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel

# By default the CLI retries failures for minutes.
NOT_FOR_MINUTES = 20.0


@pytest.fixture(autouse=True)
async def not_for_minutes() -> AsyncIterator[None]:
    begun = anyio.current_time()
    yield
    assert anyio.current_time() - begun < NOT_FOR_MINUTES


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "prompt is too long: 210000 tokens > 200000 maximum"),
        (400, "Your credit balance is too low to access the API."),
        (402, None),
        (403, None),
        (408, None),
        (413, None),
        (422, None),
        (503, None),
        (504, None),
    ],
)
async def test_an_error_has_the_class_that_it_has_for_anthropic_model(
    status: int, message: str | None, loopback: LoopbackServer, model: ClaudeCodeModel
) -> None:
    """MODEL-48, MODEL-49, MSG-35: no error that the CLI reports as text is taken for an answer."""
    errors: list[ModelHTTPError] = []
    async with AsyncAnthropic(api_key="key", base_url=loopback.url, max_retries=0) as client:
        direct = AnthropicModel(model.model_name, provider=AnthropicProvider(anthropic_client=client))
        for each in (direct, model):
            loopback.fail_next(status, message=message)
            with pytest.raises(ModelHTTPError) as caught:
                await Agent(each).run("Hello.")
            errors.append(caught.value)
    expected, actual = errors
    assert type(actual) is type(expected)
    assert actual.status_code == status
    assert [error.provider_error_type for error in errors] == [expected.provider_error_type] * 2


async def test_an_error_after_a_tool_call_never_becomes_the_output(
    loopback: LoopbackServer, model: ClaudeCodeModel
) -> None:
    """MODEL-48"""

    def let_the_next_request_fail() -> None:
        loopback.fail_next(529)

    with pytest.raises(ModelOverloadedError):
        await Agent(model, tools=[let_the_next_request_fail]).run("A number.")
