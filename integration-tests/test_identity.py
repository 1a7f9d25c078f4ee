"""The model's declared facts, and their proof: profile, settings, ids, usage, counting."""

import inspect
from datetime import UTC, datetime, timedelta
from typing import Any, get_type_hints

import pytest
from anthropic import AsyncAnthropic
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError, UsageLimitExceeded
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelRequest, ModelResponse
from pydantic_ai.models import ModelRequestContext, ModelRequestParameters, override_allow_model_requests
from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.usage import UsageLimits

from api_script import USAGE, call, number, steps, text, thought
from both_ways import comparable
from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeModelSettings, ClaudeCodeProvider
from cc_model.profile import resolve_alias

PROMPT: list[ModelMessage] = [ModelRequest.user_text_prompt("Hello.")]


def test_its_methods_are_those_that_the_framework_wraps() -> None:
    """MODEL-01, ARCH-29"""
    model = ClaudeCodeModel("sonnet", provider=ClaudeCodeProvider(), settings={"max_tokens": 5})
    assert inspect.iscoroutinefunction(ClaudeCodeModel.request)
    assert inspect.isasyncgenfunction(inspect.unwrap(ClaudeCodeModel.request_stream))
    assert (model.model_name, model.settings) == ("sonnet", {"max_tokens": 5})
    with pytest.raises(AttributeError):
        model.provider = ClaudeCodeProvider()  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("name", ["sonnet", "opus", "haiku", "claude-sonnet-5", "claude-haiku-4-5", "claude-opus-5-5"])
def test_the_profile_declares_exactly_the_supported_features(name: str) -> None:
    """MODEL-03: all model features except batches."""
    profile = ClaudeCodeModel(name, provider=ClaudeCodeProvider()).profile
    direct = AnthropicModel(resolve_alias(name), provider=AnthropicProvider(api_key="key")).profile
    differing = {claim for claim in {*profile, *direct} if profile.get(claim) != direct.get(claim)}
    assert differing <= {"context_window", "anthropic_supports_message_batches"}


def test_settings_of_its_own_have_its_prefix() -> None:
    """MODEL-28"""
    own = {*get_type_hints(ClaudeCodeModelSettings)} - {*get_type_hints(AnthropicModelSettings)}
    assert own
    assert all(name.startswith("claude_code_") for name in own)


@pytest.mark.parametrize("setting", ["cache", "anthropic_cache", "anthropic_cache_messages"])
def test_the_retention_is_that_of_the_settings_or_of_claude_codes_breakpoints(setting: str) -> None:
    """MODEL-31"""
    settings: Any = {setting: "1h"}
    model = ClaudeCodeModel(provider=ClaudeCodeProvider(cache_breakpoints=True))
    assert model.resolve_cache_retention(settings) == timedelta(hours=1)
    assert model.resolve_cache_retention(None) == timedelta(minutes=5)
    assert ClaudeCodeModel(provider=ClaudeCodeProvider()).resolve_cache_retention(None) is None


def now() -> str:
    """Tell the time."""
    return "noon"


CACHE_SETTINGS: list[dict[str, Any]] = [
    {"anthropic_cache_instructions": "1h"},
    {"anthropic_cache_tool_definitions": True},
    {"anthropic_cache_messages": True},
    {"anthropic_cache": "5m"},
    {"cache": "1h"},
]


@pytest.mark.parametrize("settings", CACHE_SETTINGS, ids=lambda settings: next(iter(settings)))
async def test_cache_settings_reach_the_api_as_they_do_directly(
    settings: Any, loopback: LoopbackServer, provider: ClaudeCodeProvider
) -> None:
    """MODEL-31: the settings' breakpoints with TTL, and no others."""
    async with AsyncAnthropic(api_key="key", base_url=loopback.url) as client:
        direct = AnthropicModel("claude-sonnet-5", provider=AnthropicProvider(anthropic_client=client))
        for model in (direct, ClaudeCodeModel("claude-sonnet-5", provider=provider)):
            agent = Agent(model, instructions="Be brief.", model_settings=settings)
            agent.tool_plain(now)
            await agent.run("What time is it?")
    half = len(loopback.requests) // 2
    sent, expected = comparable(loopback.requests[half:]), comparable(loopback.requests[:half])
    assert sent == expected
    assert "cache_control" in str(sent)


async def test_signed_thinking_travels_between_both_models_in_one_conversation(
    loopback: LoopbackServer, model: ClaudeCodeModel
) -> None:
    """MODEL-05, MODEL-20"""
    loopback.respond = steps(*([thought(f"Thought {number}.", f"c2ln{number}"), text("Yes.")] for number in range(4)))
    agent = Agent(model_settings={"thinking": "medium"})
    history: list[ModelMessage] = []
    async with AsyncAnthropic(api_key="key", base_url=loopback.url) as client:
        direct = AnthropicModel(model.model_name, provider=AnthropicProvider(anthropic_client=client))
        for number, each in enumerate((direct, model, direct, model)):
            result = await agent.run(f"Run {number}.", model=each, message_history=history)
            history = ModelMessagesTypeAdapter.validate_json(result.all_messages_json())
    blocks = [block for message in loopback.requests[-1]["messages"] for block in message["content"]]
    assert [block["signature"] for block in blocks if block["type"] == "thinking"] == ["c2ln0", "c2ln1", "c2ln2"]
    answers = [message for message in history if isinstance(message, ModelResponse)]
    assert [answer.provider_name for answer in answers] == ["anthropic", "claude-code"] * 2
    assert [answer.canonical_system or answer.provider_name for answer in answers] == ["anthropic"] * 4


async def test_nothing_starts_where_requests_are_forbidden(
    loopback: LoopbackServer, own_model: ClaudeCodeModel, own_provider: ClaudeCodeProvider
) -> None:
    """MODEL-07"""
    parameters = ModelRequestParameters()
    context = ModelRequestContext(
        model=own_model, messages=PROMPT, model_settings=None, model_request_parameters=parameters
    )
    with override_allow_model_requests(False):
        for request in (
            own_model.request(PROMPT, None, parameters),
            own_model.request_stream(PROMPT, None, parameters).__aenter__(),
            own_model.compact_messages(context),
            own_model.count_tokens(PROMPT, None, parameters),
        ):
            with pytest.raises(RuntimeError, match="ALLOW_MODEL_REQUESTS"):
                await request
    assert not own_provider.transport.pids
    assert not loopback.calls


async def test_a_response_has_its_ids_a_local_time_and_survives_json(model: ClaudeCodeModel) -> None:
    """MODEL-06, MODEL-41: the framework sets its own ids."""
    response = await model.request(PROMPT, None, ModelRequestParameters())
    assert (response.provider_name, response.provider_url) == ("claude-code", "https://api.anthropic.com")
    assert (response.provider_response_id or "").startswith("msg_")
    assert response.provider_details is not None
    assert response.provider_details.keys() == {"finish_reason", "claude_code"}
    assert response.provider_details["finish_reason"] == "end_turn"
    assert abs(datetime.now(UTC) - response.timestamp) < timedelta(minutes=1)
    assert (response.run_id, response.conversation_id, response.model_id) == (None, None, None)
    assert ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json([response])) == [response]


async def test_usage_includes_all_calls_in_the_clis_own_loop(loopback: LoopbackServer, model: ClaudeCodeModel) -> None:
    """MODEL-39: the framework does not see the calls; the next response counts from zero."""
    called = [call("mcp__pydantic_tools__number")]
    replies = iter([(called, 100), (called, 200), ("Seven.", 400), ("Eight.", 1000)])

    def respond(body: dict[str, Any]) -> Any:
        content, tokens = next(replies)
        return {"content": content, "usage": {**USAGE, "input_tokens": tokens, "output_tokens": tokens}}

    loopback.respond = respond
    agent = Agent(model, tools=[number])
    model.set_agent_toolsets(agent.toolsets)
    first = await agent.run("A number.")
    second = await agent.run("Another.", message_history=first.all_messages())
    from_caches = USAGE["cache_creation_input_tokens"] + USAGE["cache_read_input_tokens"]
    for result, calls, tokens in ((first, 3, 700), (second, 1, 1000)):
        usage = result.response.usage
        assert (usage.input_tokens, usage.output_tokens) == (tokens + calls * from_caches, tokens)
        assert usage.cache_read_tokens == calls * USAGE["cache_read_input_tokens"]
        assert usage.unmeasured_requests == 0
    assert len(loopback.requests) == 4


async def test_tokens_are_counted_by_the_api_and_no_process_is_asked(
    loopback: LoopbackServer, own_model: ClaudeCodeModel, own_provider: ClaudeCodeProvider
) -> None:
    """MODEL-61: the request itself is counted."""
    limits = UsageLimits(input_tokens_limit=5, count_tokens_before_request=True)
    with pytest.raises(UsageLimitExceeded, match="input_tokens_limit"):
        await Agent(own_model, instructions="Be kind to everybody.").run("Hello, how are you?", usage_limits=limits)
    assert [call.path for call in loopback.calls] == ["/v1/messages/count_tokens"]
    assert "Be kind" in str(loopback.calls[0].body)
    assert not own_provider.transport.pids


async def test_without_a_key_tokens_are_not_counted(loopback: LoopbackServer) -> None:
    """MODEL-61: an estimate would be wrong, so there is no count."""
    env = {name: value for name, value in loopback.env().items() if name != "ANTHROPIC_API_KEY"}
    async with ClaudeCodeProvider(env={**env, "ANTHROPIC_API_KEY": ""}, max_retries=0) as provider:
        with pytest.raises(ModelHTTPError, match="set ANTHROPIC_API_KEY"):
            await ClaudeCodeModel(provider=provider).count_tokens(PROMPT, None, ModelRequestParameters())
        assert not provider.transport.pids
