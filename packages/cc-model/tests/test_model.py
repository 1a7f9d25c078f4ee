"""Names, profiles and processes. The comparison with `AnthropicModel` is elsewhere."""

import copy
import inspect
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel

from cc_loopback import LoopbackServer
from cc_messages import ClaudeCodeTransport
from cc_model import ClaudeCodeModel, ClaudeCodeProvider
from cc_model.profile import resolve_alias
from cc_session import PoolLimits

ALIASES = {
    "default": "claude-opus-5-5",
    "fable": "claude-fable-5-2",
    "haiku": "claude-haiku-5-5",
    "opus": "claude-opus-5-5",
    "opusplan": "claude-sonnet-5-5",
    "sonnet": "claude-sonnet-5-5",
}


@pytest.mark.parametrize(("alias", "model_id"), ALIASES.items())
async def test_an_alias_has_its_models_profile_and_responses_name_the_model(
    alias: str, model_id: str, shared_api: LoopbackServer, provider: ClaudeCodeProvider
) -> None:
    """MODEL-02"""
    model, same = (ClaudeCodeModel(name, provider=provider) for name in (alias, model_id))
    assert model.profile == {**same.profile, "context_window": same.context_window}
    assert model.profile.get("supports_json_schema_output")

    def respond(body: dict[str, Any]) -> dict[str, Any]:
        return {"content": "Yes.", "model": f"{model_id}-20261101"}

    shared_api.respond = respond
    result = await Agent(model).run("Hello.")
    assert [body["model"] for body in shared_api.requests] == [model_id]
    assert result.response.model_name == f"{model_id}-20261101"


def test_a_model_id_is_not_an_alias() -> None:
    assert resolve_alias("claude-sonnet-5") == resolve_alias("claude-sonnet-5[1m]") == "claude-sonnet-5"


def test_a_profile_of_the_caller_wins() -> None:
    """MODEL-03"""
    model = ClaudeCodeModel(provider=ClaudeCodeProvider(), profile={"supports_json_schema_output": False})
    assert model.profile.get("supports_json_schema_output") is False


def test_names_are_claude_codes_and_signatures_anthropics() -> None:
    """MODEL-05, MODEL-06, ARCH-02"""
    model = ClaudeCodeModel(provider=ClaudeCodeProvider())
    assert (model.system, model.model_name) == ("claude-code", "claude-sonnet-5")
    # Before 2.63, pydantic-ai has no `canonical_system`; test_histories.py shows the effect.
    assert getattr(model, "canonical_system", "anthropic") == "anthropic"
    assert model.base_url.rstrip("/") == "https://api.anthropic.com"
    assert isinstance(model, AnthropicModel)


def test_signatures_are_as_promised() -> None:
    """ARCH-29, ARCH-30"""
    own = inspect.signature(ClaudeCodeModel).parameters
    assert [*own][:4] == ["model_name", "provider", "settings", "profile"]
    assert own["model_name"].default == "claude-sonnet-5"
    assert all(own[name].kind is inspect.Parameter.KEYWORD_ONLY for name in [*own][1:])
    assert all(own[name].default is None for name in [*own][1:])
    for name in ("request", "request_stream", "count_tokens"):
        mine, theirs = (
            inspect.signature(getattr(model, name)).parameters for model in (ClaudeCodeModel, AnthropicModel)
        )
        assert [*mine] == [*theirs], name
    toolsets = inspect.signature(ClaudeCodeModel.set_agent_toolsets).parameters
    assert [*toolsets] == ["self", "toolsets", "server_name", "transport", "max_turns"]
    assert toolsets["transport"].default == "auto"
    settings = {"pool", "env", "cwd", "cli_path", "timeouts"}
    assert settings <= {*inspect.signature(ClaudeCodeProvider).parameters}


def test_no_secret_is_in_a_repr() -> None:
    """MODEL-06"""
    provider = ClaudeCodeProvider(env={"ANTHROPIC_API_KEY": "sk-very-secret"})
    assert "secret" not in repr(provider) + repr(ClaudeCodeModel(provider=provider)) + repr(provider.transport)


async def test_a_provider_over_a_transport_uses_its_processes(shared_api: LoopbackServer) -> None:
    """MODEL-88, ARCH-01"""
    transport = ClaudeCodeTransport(pool=PoolLimits(size=1, prewarm=1), env=shared_api.env(), cache_breakpoints=False)
    async with ClaudeCodeProvider.over(transport) as provider:
        provider.start()
        await Agent(ClaudeCodeModel(provider=provider)).run("Hello.")
        assert (provider.transport, provider.cache_breakpoints) == (transport, False)
        assert transport.stats().starts == 1
    assert not transport.pids


async def test_processes_live_until_the_last_one_leaves(shared_api: LoopbackServer) -> None:
    """MODEL-63"""
    provider = ClaudeCodeProvider(env=shared_api.env())
    agent = Agent(ClaudeCodeModel(provider=provider))
    async with provider:
        async with agent:
            await agent.run("Hello.")
        assert provider.transport.pids
    assert not provider.transport.pids

    async with agent:
        assert (await agent.run("Hello again.")).output
        assert provider.transport.pids
    assert not provider.transport.pids


async def test_models_without_a_provider_share_one() -> None:
    assert ClaudeCodeModel().provider is ClaudeCodeModel("opus").provider


def test_a_model_equals_a_copy_of_itself() -> None:
    model = ClaudeCodeModel(provider=ClaudeCodeProvider())
    assert copy.copy(model) == model
