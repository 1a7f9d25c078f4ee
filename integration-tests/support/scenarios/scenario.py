"""Scenarios: an agent at work, the API's answers, and the differences that Claude Code may cause.

Each module is a theme. Each scenario is a function that gets a model, runs an agent with it, and returns
the data to compare: a result, events, or several of them. It runs twice, with `AnthropicModel` on the loopback API
and with `ClaudeCodeModel` through the real CLI to the same API; result or error, warnings, and all request bodies
must agree. The docstring names the items in the model contract that the scenario verifies.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import UserContent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.settings import ModelSettings

from api_script import Respond
from both_ways import Run, Seen

# Thinks by default, and uses native mode for structured outputs. Long answers make the client stream.
SONNET = "claude-sonnet-5"
# Takes sampling parameters, and can be forced to call a tool. Answers are short and not streamed.
HAIKU = "claude-haiku-4-5"
# Takes system messages in mid-conversation, and tools that are added by reference.
OPUS = "claude-opus-5-5"

Differ = Callable[[Seen], Seen]

_SETTINGS = {HAIKU: ModelSettings(max_tokens=4000)}


@dataclass(frozen=True)
class Scenario:
    """An agent's run with a model."""

    name: str
    run: Run
    respond: Respond | None
    model_name: str
    raises: type[Exception] | None
    differ: Differ | None
    defect: str | None

    def __str__(self) -> str:
        return self.name

    @property
    def settings(self) -> ModelSettings | None:
        """Return the model's settings."""
        return _SETTINGS.get(self.model_name)


class Theme:
    """A module's scenarios, in source order."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._scenarios: list[Scenario] = []

    def scenario(
        self,
        respond: Respond | None = None,
        *,
        on: str | tuple[str, ...] = SONNET,
        raises: type[Exception] | None = None,
        differ: Differ | None = None,
        defect: str | None = None,
    ) -> Callable[[Run], Run]:
        """Add a scenario.

        Args:
            respond: The API's answers; by default each tool is called once, and then the results are summed up.
            on: The models.
            raises: The error that ends the scenario, both ways.
            differ: Maps `AnthropicModel`'s data to Claude Code's expected data, where a documented limit
                makes a difference. The data must differ.
            defect: A known defect; the scenario is expected to fail until it is fixed.
        """

        def add(run: Callable[[AnthropicModel], Awaitable[object]]) -> Run:
            for model in [on] if isinstance(on, str) else on:
                name = f"{self._name}.{run.__name__}-{model}"
                self._scenarios.append(Scenario(name, run, respond, model, raises, differ, defect))
            return run

        return add

    def __iter__(self) -> Iterator[Scenario]:
        return iter(self._scenarios)


def like(
    model: AnthropicModel,
    name: str | None = None,
    *,
    settings: ModelSettings | None = None,
    profile: ModelProfile | None = None,
) -> AnthropicModel:
    """Return another model on the same provider."""
    kind: Any = type(model)
    return kind(name or model.model_name, provider=model.provider, settings=settings or model.settings, profile=profile)


async def continued(agent: Agent[object, Any], prompt: str | Sequence[UserContent], then: str) -> object:
    """Run, and run again on the result."""
    first = await agent.run(prompt)
    return [first, await agent.run(then, message_history=first.all_messages())]
