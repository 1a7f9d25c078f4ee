"""Responses other than plain answers: refusals, limits, thinking, errors; and usage."""

from decimal import Decimal

from pydantic_ai import Agent, ToolOutput
from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import (
    ContentFilterError,
    OutputTokenLimitExceeded,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
)
from pydantic_ai.messages import ModelRequest
from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings
from pydantic_ai.usage import UsageLimits

from api_script import (
    USAGE,
    Block,
    Body,
    Reply,
    Respond,
    call,
    echo,
    hop,
    steps,
    stopped,
    text,
    thought,
    usage_of_fallback,
)

from .outputs import City
from .scenario import HAIKU, OPUS, SONNET, Theme, continued
from .tools import lucky_number

responses = Theme("responses")

DETAILED = {
    "input_tokens": 12,
    "output_tokens": 34,
    "cache_creation_input_tokens": 56,
    "cache_read_input_tokens": 78,
    "cache_creation": {"ephemeral_5m_input_tokens": 6, "ephemeral_1h_input_tokens": 50},
    "output_tokens_details": {"thinking_tokens": 9},
    "service_tier": "priority",
}


@responses.scenario(steps(stopped("refusal", text("I cannot."))), on=(SONNET, HAIKU))
async def a_refusal_with_words(model: AnthropicModel) -> object:
    """MODEL-36: a single request, and the finish reason is `content_filter`."""
    return await Agent(model).run("Something bad.")


@responses.scenario(
    steps(stopped("refusal", stop_details={"type": "refusal", "category": "cyber", "explanation": "No."})),
    on=(SONNET, HAIKU),
    raises=ContentFilterError,
)
async def a_refusal_without_words(model: AnthropicModel) -> object:
    """MODEL-36"""
    return await Agent(model).run("Something bad.")


@responses.scenario(steps(stopped("refusal", text("I can")), "Gladly."))
async def a_conversation_after_a_refusal(model: AnthropicModel) -> object:
    """MODEL-36, MODEL-51"""
    return await continued(Agent(model), "Something bad.", "Something good.")


ANSWERING = "claude-opus-5"
FALLBACK_SETTINGS = AnthropicModelSettings(
    anthropic_betas=["server-side-fallback-2026-07-01"], extra_body={"fallbacks": [{"model": ANSWERING}]}
)


def answered_by_another(*content: Block) -> Respond:
    """Let another model finish the first answer."""
    first = {"model": ANSWERING, "content": [*content], "usage": usage_of_fallback(OPUS, ANSWERING)}
    return steps(first, "Bye.")


@responses.scenario(answered_by_another(hop(OPUS, ANSWERING), thought("Hm."), text("Gladly.")), on=OPUS)
async def a_fallback_before_the_answer(model: AnthropicModel) -> object:
    """MODEL-120: the response has the answering model's name and usage."""
    return await continued(Agent(model, model_settings=FALLBACK_SETTINGS), "Something odd.", "Thanks.")


@responses.scenario(answered_by_another(thought("A."), text("I"), hop(OPUS, ANSWERING), text(" can.")), on=OPUS)
async def a_fallback_in_mid_answer(model: AnthropicModel) -> object:
    """MODEL-120: both texts are in the output; the framework has no part for the block between."""
    agent = Agent(model, model_settings=FALLBACK_SETTINGS)
    async with agent.run_stream("Something odd.") as stream:
        output = await stream.get_output()
    return [output, stream.all_messages(), await agent.run("Thanks.", message_history=stream.all_messages())]


@responses.scenario(answered_by_another(thought("A."), hop(OPUS, ANSWERING), thought("B."), text("Yes.")), on=OPUS)
async def a_fallback_between_thinking(model: AnthropicModel) -> object:
    """MODEL-120: without the block between, the API refuses the thinking, and the framework asks to drop it."""
    return await continued(Agent(model, model_settings=FALLBACK_SETTINGS), "Something odd.", "Thanks.")


@responses.scenario(answered_by_another(hop(OPUS, ANSWERING), text("Gladly.")), on=OPUS, raises=AssertionError)
async def a_fallback_in_a_whole_answer(model: AnthropicModel) -> object:
    """MODEL-120: the framework cannot read the block in an answer that is not streamed."""
    return await Agent(model, model_settings={**FALLBACK_SETTINGS, "max_tokens": 4000}).run("Something odd.")


@responses.scenario(steps(stopped("max_tokens", text("A long sto")), "ry."), on=(SONNET, HAIKU))
async def a_text_that_was_cut_at_the_limit(model: AnthropicModel) -> object:
    """MODEL-36: the text is the output, and marked as cut."""
    agent = Agent(model)
    first = await agent.run("A story.", model_settings={"max_tokens": 10})
    return [first, await agent.run("Go on.", message_history=first.all_messages())]


@responses.scenario(steps(stopped("max_tokens", thought("Let me th"))), raises=OutputTokenLimitExceeded)
async def thinking_that_has_used_up_the_limit(model: AnthropicModel) -> object:
    """MODEL-36"""
    return await Agent(model).run("A story.", model_settings={"max_tokens": 10})


@responses.scenario(
    steps(stopped("max_tokens", call("final_result", name="Par"))),
    on=(SONNET, HAIKU),
    raises=UnexpectedModelBehavior,
)
async def a_call_that_was_cut_at_the_limit(model: AnthropicModel) -> object:
    """MODEL-36"""
    agent = Agent(model, output_type=ToolOutput(City), retries=0)
    return await agent.run("A city.", model_settings={"max_tokens": 10})


@responses.scenario(lambda body: stopped("model_context_window_exceeded", text("No more ro")), on=(SONNET, HAIKU))
async def a_context_window_that_is_full(model: AnthropicModel) -> object:
    """MODEL-36"""
    return await Agent(model).run("A story.")


def only_when_asked_twice(body: Body) -> Reply:
    """Answer with nothing, and with a text after the framework's retry prompt."""
    return "Here I am." if "Please return text" in str(body["messages"][-1]) else []


@responses.scenario(only_when_asked_twice)
async def an_empty_answer(model: AnthropicModel) -> object:
    """MODEL-36: the framework retries once."""
    return await Agent(model).run("Are you there?")


@responses.scenario(steps([thought("Hm.")], "Here I am."))
async def an_answer_of_thinking_alone(model: AnthropicModel) -> object:
    """MODEL-20, MODEL-36: the framework retries once."""
    return await Agent(model).run("Are you there?")


@responses.scenario(
    steps(
        {"content": [call("lucky_number", low=1, high=3)], "usage": DETAILED}, {"content": "Two.", "usage": DETAILED}
    ),
    on=(SONNET, HAIKU),
)
async def usage_of_two_requests(model: AnthropicModel) -> object:
    """MODEL-39, MODEL-41: per request, with caches and details; whole and streamed."""
    agent = Agent(model, tools=[lucky_number])
    whole = await agent.run("A number.")
    async with agent.run_stream("A number.") as stream:
        await stream.get_output()
    return [whole, [message.usage for message in stream.all_messages() if message.kind == "response"]]


@responses.scenario(echo, raises=UsageLimitExceeded)
async def a_limit_of_output_tokens(model: AnthropicModel) -> object:
    """MODEL-39"""
    return await Agent(model).run("Hello.", usage_limits=UsageLimits(output_tokens_limit=USAGE["output_tokens"] - 1))


@responses.scenario(echo, raises=UsageLimitExceeded)
async def a_limit_of_cost(model: AnthropicModel) -> object:
    """MODEL-40: the framework's own price for the request is used."""
    return await Agent(model).run("Hello.", usage_limits=UsageLimits(cost_limit=Decimal("0.0001")))


@responses.scenario(echo)
async def a_request_without_an_agent(model: AnthropicModel) -> object:
    """MODEL-41"""
    return await model_request(model, [ModelRequest.user_text_prompt("Hello.")])
