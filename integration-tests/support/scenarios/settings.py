"""Settings: each reaches the body as `AnthropicModel` writes it, also on a warm process, or gives a warning."""

import warnings
from typing import Any

from pydantic_ai import Agent, ToolOutput
from pydantic_ai.exceptions import UserError
from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings
from pydantic_ai.settings import ModelSettings, ToolOrOutput

from api_script import call, echo, steps

from .outputs import PARIS, City
from .scenario import HAIKU, OPUS, SONNET, Theme, like
from .tools import lucky_number

settings = Theme("settings")

EVERY_MODEL = (SONNET, HAIKU, OPUS)


async def one_after_the_other(model: AnthropicModel, *each: ModelSettings) -> object:
    """Run once for each settings, on the previous history, so that settings change on a warm process."""
    agent = Agent(model)
    results: list[Any] = []
    for number, chosen in enumerate(each):
        history = results[-1].all_messages() if results else None
        results.append(await agent.run(f"Run {number}.", model_settings=chosen, message_history=history))
    return results


@settings.scenario(echo, on=EVERY_MODEL)
async def sampling_that_changes(model: AnthropicModel) -> object:
    """MODEL-26: where the model does not support it, there is a warning."""
    return await one_after_the_other(
        model,
        {"temperature": 0.25, "top_p": 0.5, "top_k": 3},
        {"temperature": 0.5},
        {"max_tokens": 77, "stop_sequences": ["END", "STOP"]},
        {},
    )


@settings.scenario(echo)
async def tiers_metadata_and_more(model: AnthropicModel) -> object:
    """MODEL-26: settings unknown to the framework reach the body too."""
    return await one_after_the_other(
        model,
        {"service_tier": "default"},
        AnthropicModelSettings(anthropic_service_tier="auto", anthropic_metadata={"user_id": "somebody"}),
        {"extra_body": {"inference_geo": "us", "output_config": {"effort": "low"}}},
        {"service_tier": "flex"},
    )


@settings.scenario(echo)
async def settings_that_no_claude_model_takes(model: AnthropicModel) -> object:
    """MODEL-26: the framework drops such settings, or warns."""
    return await one_after_the_other(
        model, {"seed": 1, "presence_penalty": 0.5, "frequency_penalty": 0.5, "logit_bias": {"1": 1}}
    )


@settings.scenario(echo)
async def betas(model: AnthropicModel) -> object:
    """MODEL-26"""
    return await one_after_the_other(model, AnthropicModelSettings(anthropic_betas=["context-1m-2025-08-07"]), {})


LEVELS: list[ModelSettings] = [
    {"thinking": level} for level in (True, False, "minimal", "low", "medium", "high", "xhigh")
]


@settings.scenario(echo, on=(SONNET, HAIKU, "claude-opus-4-5"))
async def every_level_of_thinking(model: AnthropicModel) -> object:
    """MODEL-28"""
    with warnings.catch_warnings():  # the client deprecates the oldest model with levels
        warnings.simplefilter("ignore", DeprecationWarning)
        return await one_after_the_other(model, *LEVELS)


@settings.scenario(echo, on=OPUS)
async def levels_of_thinking_where_they_could_change_within_a_conversation(model: AnthropicModel) -> object:
    """MODEL-03, MODEL-28: a change of effort is sent as a message, so that the cache stays valid."""
    return await one_after_the_other(model, *LEVELS)


@settings.scenario(echo)
async def effort_and_thinking_by_their_own_names(model: AnthropicModel) -> object:
    """MODEL-28"""
    return await one_after_the_other(
        model,
        AnthropicModelSettings(anthropic_effort="low"),
        AnthropicModelSettings(anthropic_thinking={"type": "disabled"}),
        AnthropicModelSettings(anthropic_thinking={"type": "adaptive"}, anthropic_effort="xhigh"),
    )


@settings.scenario(echo, on=OPUS, raises=UserError)
async def a_budget_where_there_is_none(model: AnthropicModel) -> object:
    """MODEL-28"""
    await Agent(model).run("Hello.")
    budget = AnthropicModelSettings(anthropic_thinking={"type": "enabled", "budget_tokens": 2000})
    return await Agent(model).run("Hello.", model_settings=budget)


CHOICES: list[Any] = ["auto", "none", ToolOrOutput(function_tools=["lucky_number"]), ["lucky_number"]]


def one_number(body: dict[str, Any]) -> Any:
    """Call the tool once if it is available."""
    last = body["messages"][-1]["content"][-1]
    may_call = body.get("tool_choice", {}).get("type") != "none" and last["type"] != "tool_result"
    return [call("lucky_number", low=1, high=3)] if may_call else "Two."


@settings.scenario(one_number, on=EVERY_MODEL)
async def forms_of_tool_choice(model: AnthropicModel) -> object:
    """MODEL-29"""
    outcomes: list[Any] = []
    for choice in CHOICES:
        agent = Agent(model, tools=[lucky_number], output_type=[str, ToolOutput(City)])
        try:
            outcomes.append(await agent.run("A number.", model_settings={"tool_choice": choice}))
        except UserError as error:
            outcomes.append(error)
    return outcomes


@settings.scenario(steps([call("final_result", **PARIS)]), on=EVERY_MODEL)
async def a_tool_that_must_be_called(model: AnthropicModel) -> object:
    """MODEL-29: the tool is forced where the model allows it."""
    return await Agent(model, output_type=ToolOutput(City)).run("A city.")


@settings.scenario(steps([call("lucky_number", low=1, high=3)], "Two."), on=EVERY_MODEL)
async def one_call_at_a_time(model: AnthropicModel) -> object:
    """MODEL-26, MODEL-29"""
    agent = Agent(model, tools=[lucky_number])
    return await agent.run("A number.", model_settings={"parallel_tool_calls": False})


@settings.scenario(echo)
async def settings_of_the_model_the_agent_and_the_run(model: AnthropicModel) -> object:
    """MODEL-01"""
    mine = like(model, settings={"max_tokens": 500, "stop_sequences": ["MODEL"]})
    agent = Agent(mine, model_settings={"stop_sequences": ["AGENT"]})
    return [await agent.run("One."), await agent.run("Two.", model_settings={"max_tokens": 600})]


@settings.scenario(echo)
async def cache_settings(model: AnthropicModel) -> object:
    """MODEL-31"""
    return await one_after_the_other(
        model, AnthropicModelSettings(anthropic_cache=True), AnthropicModelSettings(anthropic_cache_messages="1h")
    )


@settings.scenario(echo)
async def eager_input_and_context_management(model: AnthropicModel) -> object:
    """MODEL-26"""
    edits = {"edits": [{"type": "clear_tool_uses_20250919"}]}
    chosen = AnthropicModelSettings(anthropic_context_management=edits, anthropic_eager_input_streaming=True)  # pyright: ignore[reportArgumentType]
    return await Agent(model, tools=[lucky_number]).run("Hello.", model_settings=chosen)
