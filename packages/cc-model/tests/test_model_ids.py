"""The places where pydantic-ai takes a model id: those that resolve `claude-code:`, and those that need the model."""

from pathlib import Path

import pytest
from pydantic_ai import Agent, capabilities
from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelRequest
from pydantic_ai.models import infer_model
from pydantic_ai.models.concurrency import ConcurrencyLimitedModel
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.wrapper import WrapperModel

from cc_loopback import LoopbackServer
from cc_model import ClaudeCode, ClaudeCodeModel, ClaudeCodeProvider, claude_code
from cc_model.profile import resolve_alias
from cc_model.provider import default_provider


def model_names(api: LoopbackServer) -> list[str]:
    return [request["model"] for request in api.requests]


async def test_an_agent_with_the_capability_takes_ids_everywhere(
    shared_api: LoopbackServer, provider: ClaudeCodeProvider
) -> None:
    """MODEL-68, MODEL-70, MODEL-96, ARCH-31: ids for other providers stay as they are."""
    capability = claude_code(provider=provider)
    agent = Agent("claude-code:sonnet", capabilities=[capability])
    assert (await agent.run("Hello.")).response.model_name == resolve_alias("sonnet")
    await agent.run("Hello.", model="claude-code:haiku")
    with agent.override(model="claude-code:opus"):
        await agent.run("Hello.")
    async with agent.run_stream("Hello.", model="claude-code:fable") as result:
        assert await result.get_output()
    assert (await agent.run("Hello.", model="test")).output
    with pytest.raises(UserError):
        await agent.run("Hello.", model="no-such-provider:model")
    names = ("sonnet", "haiku", "opus", "fable")
    assert model_names(shared_api) == [resolve_alias(name) for name in names]


@pytest.mark.skipif(not hasattr(capabilities, "ModelFallback"), reason="pydantic-ai has ModelFallback from 2.64 on")
async def test_fallback_capability_takes_an_id(shared_api: LoopbackServer, provider: ClaudeCodeProvider) -> None:
    """MODEL-68."""
    own, fallback = claude_code(provider=provider), capabilities.ModelFallback[object]("claude-code:haiku")
    shared_api.fail_next(529)
    await Agent("claude-code:opus", capabilities=[own, fallback]).run("Hello.")
    assert model_names(shared_api) == [resolve_alias(name) for name in ("opus", "haiku")]


async def test_pydantic_ai_itself_has_no_place_for_a_new_prefix() -> None:
    """MODEL-70. If this fails, register `claude-code` there, and shorten the page about model ids."""
    with pytest.raises(UserError, match="Unknown model: claude-code:sonnet"):
        infer_model("claude-code:sonnet")
    with pytest.raises(UserError, match="Unknown model: claude-code:sonnet"):
        FallbackModel("claude-code:sonnet", "test")
    with pytest.raises(UserError, match="Unknown model: claude-code:sonnet"):
        await model_request("claude-code:sonnet", [ModelRequest.user_text_prompt("Hello.")])


@pytest.mark.worlds
async def test_an_agent_from_a_file_takes_an_id(
    shared_api: LoopbackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MODEL-97"""
    for name, value in shared_api.env().items():
        monkeypatch.setenv(name, value)  # a file names no provider
    file = tmp_path / "agent.json"
    file.write_text('{"model": "claude-code:sonnet", "capabilities": ["ClaudeCode"]}', encoding="utf-8")
    agent = Agent.from_file(file, custom_capability_types=[ClaudeCode])
    async with default_provider():
        assert (await agent.run("Hello.")).output
    assert model_names(shared_api) == [resolve_alias("sonnet")]


async def test_the_model_takes_an_id_where_pydantic_ai_needs_a_model(
    shared_api: LoopbackServer, provider: ClaudeCodeProvider
) -> None:
    """MODEL-98"""
    model = ClaudeCodeModel("claude-code:sonnet", provider=provider)
    assert (model.model_name, model.model_id) == ("sonnet", "claude-code:sonnet")
    for variant in (
        model,
        FallbackModel(model, "test"),
        WrapperModel(model),
        ConcurrencyLimitedModel(model, limiter=1),
        infer_model(model),
    ):
        response = await model_request(variant, [ModelRequest.user_text_prompt("Hello.")])
        assert response.provider_name == "claude-code"
    assert model_names(shared_api) == [resolve_alias("sonnet")] * 5
