"""Thinking in a history: signed, redacted, forged, of another model, and after a change of what comes before."""

from dataclasses import replace

from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelRequestRejectedError
from pydantic_ai.messages import TextPart, ThinkingPart
from pydantic_ai.models.anthropic import AnthropicModel

from api_script import Body, Reply, call, echo, steps, text, thought

from .differences import with_advice
from .histories import assistant, go_on, user
from .scenario import HAIKU, OPUS, SONNET, Theme, continued, like
from .tools import lucky_number

thinking = Theme("thinking")


@thinking.scenario(steps([thought("They greet."), text("Hello.")], "Yes."), on=(SONNET, HAIKU))
async def thinking_of_our_own(model: AnthropicModel) -> object:
    """MODEL-05, MODEL-20: signed thinking becomes a thinking block again."""
    return await continued(Agent(model, model_settings={"thinking": "high"}), "Hi.", "Go on.")


@thinking.scenario(steps([thought("They greet."), text("Hello.")], "Yes.", "No."))
async def thinking_that_another_provider_has_signed(model: AnthropicModel) -> object:
    """MODEL-05, MODEL-20: thinking from the other way is accepted too."""
    first = await Agent(model, tools=[lucky_number]).run("Hi.")
    [signed] = [part for part in first.response.parts if isinstance(part, ThinkingPart)]
    return await go_on(model, user("Hi."), assistant(replace(signed, provider_name="anthropic"), TextPart("Hello.")))


@thinking.scenario(echo, raises=ModelRequestRejectedError, differ=with_advice)
async def thinking_that_nobody_has_signed(model: AnthropicModel) -> object:
    """MODEL-20, MODEL-48: the API refuses the signature."""
    forged = ThinkingPart("They greet.", signature="c2ln", provider_name=model.system)
    return await go_on(model, user("Hi."), assistant(forged, TextPart("Hello."), by=model.system))


def thinking_about(body: Body) -> Reply:
    """Think about the number of answers, and call a tool in the first step of each turn."""
    answers = sum(message["role"] == "assistant" for message in body["messages"])
    content = call("lucky_number", low=1, high=3) if answers % 2 == 0 else text(f"Answer {answers}.")
    return [thought(f"Thought {answers}."), content]


async def two_turns_with_other_instructions(model: AnthropicModel) -> object:
    agent = Agent(model, tools=[lucky_number], model_settings={"thinking": "low"})
    first = await agent.run("A number.", instructions="Be brief.")
    second = await agent.run("Another.", instructions="Be kind.", message_history=first.all_messages())
    async with agent.run_stream("And one.", instructions="Be bold.", message_history=second.all_messages()) as stream:
        return [second, await stream.get_output(), stream.all_messages()]


@thinking.scenario(thinking_about, on=OPUS)
async def thinking_that_is_dropped_after_other_instructions(model: AnthropicModel) -> object:
    """MODEL-05, MODEL-20: the API refuses it, the framework repeats the request without it, and warns."""
    return await two_turns_with_other_instructions(model)


@thinking.scenario(thinking_about, raises=ModelRequestRejectedError, differ=with_advice)
async def thinking_that_is_refused_after_other_instructions(model: AnthropicModel) -> object:
    """MODEL-05, MODEL-20: the framework does not know that this model binds its thinking."""
    return await two_turns_with_other_instructions(model)


@thinking.scenario(thinking_about, on=(OPUS, SONNET))
async def thinking_that_another_model_cannot_read(model: AnthropicModel) -> object:
    """MODEL-05: the API drops it, and reports this."""
    agent = Agent(model, tools=[lucky_number], model_settings={"thinking": "low"})
    first = await agent.run("A number.", model=like(model, HAIKU, settings={"max_tokens": 4000}))
    return await agent.run("Another.", message_history=first.all_messages())


@thinking.scenario(echo)
async def thinking_without_a_signature(model: AnthropicModel) -> object:
    """MODEL-20: foreign thinking is rendered as text."""
    parts = [ThinkingPart("They greet.", signature="", provider_name=model.system), TextPart("Hello.")]
    return await go_on(model, user("Hi."), assistant(*parts, by=model.system))


@thinking.scenario(steps([thought("Hm."), call("lucky_number", low=1, high=3)], [thought("So."), text("Two.")], "Bye."))
async def thinking_between_tools_that_comes_back(model: AnthropicModel) -> object:
    """MODEL-20, MODEL-37"""
    agent = Agent(model, tools=[lucky_number], model_settings={"thinking": "medium"})
    first = await agent.run("A number.")
    return await agent.run("Thanks.", message_history=first.all_messages())


@thinking.scenario(steps([{"type": "redacted_thinking", "data": "ZGF0YQ=="}, text("Hm.")], "Bye."))
async def redacted_thinking_that_comes_back(model: AnthropicModel) -> object:
    """MODEL-20, MODEL-37"""
    agent = Agent(model)
    first = await agent.run("Think.")
    return await agent.run("Thanks.", message_history=first.all_messages())
