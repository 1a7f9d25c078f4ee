"""What the model says of itself, and that it is so: names, profile, settings, native tools, counting, logs."""

import inspect
from datetime import UTC, datetime, timedelta

import pytest
from anthropic import AsyncAnthropic
from pydantic_ai import Agent, BinaryContent, FileSearchTool, ImageGenerationTool, MemoryTool, ModelProfile
from pydantic_ai.capabilities import NativeOrLocalTool, NativeTool
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelRequest, ModelResponse, NativeToolCallPart
from pydantic_ai.models import ModelRequestContext, ModelRequestParameters, override_allow_model_requests
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.native_tools import AbstractNativeTool
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.usage import UsageLimits

from api_script import steps, text, thought
from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider

PROMPT: list[ModelMessage] = [ModelRequest.user_text_prompt("Hello.")]


def test_its_methods_are_what_the_framework_wraps() -> None:
    """MODEL-01"""
    model = ClaudeCodeModel("sonnet", provider=ClaudeCodeProvider(), settings={"max_tokens": 5})
    assert inspect.iscoroutinefunction(ClaudeCodeModel.request)
    assert inspect.isasyncgenfunction(inspect.unwrap(ClaudeCodeModel.request_stream))
    assert (model.model_name, model.settings) == ("sonnet", {"max_tokens": 5})
    with pytest.raises(AttributeError):
        model.provider = ClaudeCodeProvider()  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("name", ["sonnet", "opus", "haiku", "claude-sonnet-5", "claude-haiku-4-5", "claude-opus-5-5"])
def test_the_profile_claims_what_is_carried_and_no_more(name: str) -> None:
    """MODEL-03, MODEL-59: no setting of a native tool is claimed that nobody enforces."""
    profile = ClaudeCodeModel(name, provider=ClaudeCodeProvider()).profile
    for claim in (
        "supports_inline_system_prompts",
        "supports_request_scoped_system_prompts",
        "supports_mid_conversation_effort",
    ):
        assert profile.get(claim) is False
    assert profile.get("supported_native_tools") == frozenset()


def test_a_profile_may_be_a_function_of_the_default_one() -> None:
    """MODEL-03"""

    def smaller(default: ModelProfile) -> ModelProfile:
        return {**default, "context_window": (default.get("context_window") or 0) // 2}  # pyright: ignore[reportReturnType]

    plain = ClaudeCodeModel(provider=ClaudeCodeProvider())
    halved = ClaudeCodeModel(provider=ClaudeCodeProvider(), profile=smaller)
    assert halved.profile.get("context_window") == (plain.profile.get("context_window") or 0) // 2
    assert halved.profile.get("supports_inline_system_prompts") is False


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("claude-haiku-4-5", 200_000),
        ("claude-haiku-4-5[1m]", 1_000_000),
        ("sonnet", 1_000_000),
        ("opus[1m]", 1_000_000),
    ],
)
def test_the_size_of_the_context_is_known(name: str, tokens: int) -> None:
    """MODEL-03"""
    assert ClaudeCodeModel(name, provider=ClaudeCodeProvider()).context_window == tokens


def test_what_cannot_be_passed_on_is_declared() -> None:
    """MODEL-04, MODEL-31: the rest is as it is for `AnthropicModel`."""
    model = ClaudeCodeModel(provider=ClaudeCodeProvider())
    assert ClaudeCodeModel.unsupported_settings >= AnthropicModel.unsupported_settings
    assert ClaudeCodeModel.supported_tool_deferral_modes == frozenset()
    assert ClaudeCodeModel.supported_tool_addition_modes == frozenset()
    assert model.batch_max_requests is None
    assert not model.profile.get("supports_cache")
    assert not model.profile.get("supports_auto_cache")


async def test_a_sound_that_a_tool_returns_becomes_a_note(loopback: LoopbackServer, model: ClaudeCodeModel) -> None:
    """MODEL-04"""
    agent = Agent(model)

    @agent.tool_plain
    def record() -> BinaryContent:
        """Record."""
        return BinaryContent(b"ID3", media_type="audio/mpeg")

    await agent.run("Record.")
    [result] = loopback.requests[-1]["messages"][-1]["content"]
    assert [block["type"] for block in result["content"]] == ["text"]
    assert "audio" in result["content"][0]["text"]


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
    loopback: LoopbackServer, model: ClaudeCodeModel, provider: ClaudeCodeProvider
) -> None:
    """MODEL-07"""
    parameters = ModelRequestParameters()
    context = ModelRequestContext(
        model=model, messages=PROMPT, model_settings=None, model_request_parameters=parameters
    )
    with override_allow_model_requests(False):
        with pytest.raises(RuntimeError, match="ALLOW_MODEL_REQUESTS"):
            await model.request(PROMPT, None, parameters)
        with pytest.raises(RuntimeError, match="ALLOW_MODEL_REQUESTS"):
            async with model.request_stream(PROMPT, None, parameters):
                pass
        with pytest.raises(RuntimeError, match="ALLOW_MODEL_REQUESTS"):
            await model.compact_messages(context)
        with pytest.raises((RuntimeError, NotImplementedError)):
            await model.count_tokens(PROMPT, None, parameters)
    assert not provider.transport.pids
    assert not loopback.calls


async def test_a_response_has_its_ids_a_local_time_and_survives_json(model: ClaudeCodeModel) -> None:
    """MODEL-41: ids that belong to the framework are left to it."""
    response = await model.request(PROMPT, None, ModelRequestParameters())
    assert (response.provider_response_id or "").startswith("msg_")
    assert response.provider_details == {"finish_reason": "end_turn"}
    assert abs(datetime.now(UTC) - response.timestamp) < timedelta(minutes=1)
    assert (response.run_id, response.conversation_id, response.model_id) == (None, None, None)
    assert ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json([response])) == [response]


@pytest.mark.parametrize("tool", [MemoryTool(), ImageGenerationTool(), FileSearchTool(file_store_ids=["store"])])
async def test_a_native_tool_that_is_not_wired_raises_or_gives_way_to_a_local_one(
    tool: AbstractNativeTool, loopback: LoopbackServer, model: ClaudeCodeModel
) -> None:
    """MODEL-58"""

    def stand_in(query: str) -> str:
        """Do it here."""
        return f"local {query}"

    with pytest.raises(UserError, match="not supported by this model"):
        await Agent(model, capabilities=[NativeTool(tool)]).run("Go.")
    assert not loopback.requests

    both = NativeOrLocalTool[object](native=tool, local=stand_in)
    result = await Agent(model, capabilities=[both]).run("Go.")
    assert "local" in result.output
    assert [sent["name"] for sent in loopback.requests[0]["tools"]] == ["stand_in"]


async def test_tools_of_the_clis_loop_show_as_native_parts_under_our_name(
    loopback: LoopbackServer, model: ClaudeCodeModel
) -> None:
    """MODEL-22, MODEL-60: and come back as calls and results."""
    agent = Agent(model)

    @agent.tool_plain
    def number() -> int:
        """A number."""
        return 7

    model.set_agent_toolsets(agent.toolsets)
    result = await agent.run("A number.")
    [response] = [message for message in result.all_messages() if isinstance(message, ModelResponse)]
    [part] = [part for part in response.parts if isinstance(part, NativeToolCallPart)]
    assert part.provider_name == "claude-code"
    assert part.tool_name.startswith("mcp_server")

    model.set_agent_toolsets(None)
    await agent.run("Thanks.", message_history=result.all_messages())
    blocks = [block for message in loopback.requests[-1]["messages"] for block in message["content"]]
    kinds = [block["type"] for block in blocks if block["type"].startswith("tool_")]
    assert kinds[:2] == ["tool_use", "tool_result"]


async def test_tokens_are_not_counted_ahead_and_no_process_is_asked(
    model: ClaudeCodeModel, provider: ClaudeCodeProvider
) -> None:
    """MODEL-61: an estimate would be none, so there is none."""
    limits = UsageLimits(input_tokens_limit=1000, count_tokens_before_request=True)
    with pytest.raises(NotImplementedError):
        await Agent(model).run("Hello.", usage_limits=limits)
    assert not provider.transport.pids
