"""Requests: prepared once, equal for every caller, with a limit on attempts and time."""

import asyncio
from itertools import pairwise
from typing import Any

import anyio
import pytest
from anthropic import AsyncAnthropic
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError, ModelRequestTimeout
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
)
from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.settings import ModelSettings

from api_script import call, echo, number, steps, text, thought
from both_ways import comparable
from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider
from processes import at_rest

# Long enough for a running process to send a request to the API, on a busy machine too.
SOON = 0.4
# The test is about the end of a wait, not about the time.
NOT_FOR_EVER = 15.0


async def test_each_body_begins_with_the_one_before(loopback: LoopbackServer, model: ClaudeCodeModel) -> None:
    """MODEL-25: through tools, thinking and a second run."""
    loopback.respond = steps([thought("Hm."), call("number")], [text("I "), call("number")], "Two.", "Bye.")
    agent = Agent(model, tools=[number], instructions="Be brief.")
    first = await agent.run("A number.")
    await agent.run("Thanks.", message_history=first.all_messages())
    assert len(loopback.requests) == 4
    for before, after in pairwise(loopback.requests):
        assert comparable([after])[0]["messages"][: len(before["messages"])] == comparable([before])[0]["messages"]
        changes: dict[str, Any] = {"messages": before["messages"], "metadata": before["metadata"]}
        assert {**after, **changes} == before


async def test_a_request_is_the_same_on_warm_and_new_processes(loopback: LoopbackServer) -> None:
    """MODEL-12, MODEL-25, SES-66: after tools, other settings and another conversation."""
    loopback.respond = steps([thought("Hm."), call("number")], "Two.", "Three.")
    agent = Agent(tools=[number])
    async with ClaudeCodeProvider(env=loopback.env(), pool=1) as provider:
        model = ClaudeCodeModel(provider=provider)
        first = await agent.run("A number.", model=model)
        await Agent(model).run("Something else.", model_settings={"max_tokens": 9})
        await agent.run("Another.", model=model, message_history=first.all_messages())
        await provider.aclose()
        await agent.run("Another.", model=model, message_history=first.all_messages())
    warm, cold = loopback.requests[-2:]
    assert comparable([warm]) == comparable([cold])


@pytest.mark.parametrize("status", [401, 429, 500, 529])
async def test_without_retries_there_is_one_attempt(
    status: int, loopback: LoopbackServer, model: ClaudeCodeModel, provider: ClaudeCodeProvider
) -> None:
    """MODEL-27: neither the client nor the CLI retries."""
    loopback.fail_next(status, times=9)
    with pytest.raises(ModelHTTPError):
        await Agent(model).run("Hello.")
    await at_rest(provider)
    assert len(loopback.requests) == 1


@pytest.mark.worlds
async def test_temporary_failures_have_three_attempts_by_default(loopback: LoopbackServer) -> None:
    """MODEL-27"""
    loopback.fail_next(500, times=9, headers={"retry-after": "0.01"})
    async with ClaudeCodeProvider(env=loopback.env()) as provider:
        with pytest.raises(ModelHTTPError):
            await Agent(ClaudeCodeModel(provider=provider)).run("Hello.")
    assert len(loopback.requests) == 3


async def test_betas_are_sent_beside_the_clis_own(loopback: LoopbackServer, model: ClaudeCodeModel) -> None:
    """MODEL-26, MODEL-27"""
    settings = AnthropicModelSettings(
        anthropic_betas=["context-1m-2025-08-07"], extra_headers={"anthropic-beta": "files-api-2025-04-14"}
    )
    await Agent(model).run("Hello.", model_settings=settings)
    betas = loopback.calls[-1].headers["anthropic-beta"].split(",")
    assert {"context-1m-2025-08-07", "files-api-2025-04-14"} <= set(betas)


async def test_extra_headers_reach_the_api_with_the_request_that_has_them(
    loopback: LoopbackServer,
) -> None:
    """MODEL-26, MODEL-27, MSG-67: request by request on the same process, beside the environment's headers."""
    env = {**loopback.env(), "ANTHROPIC_CUSTOM_HEADERS": "x-always: yes"}
    async with ClaudeCodeProvider(env=env, max_retries=0) as provider:
        agent = Agent(ClaudeCodeModel(provider=provider))
        await agent.run("Hello.", model_settings={"extra_headers": {"X-Mine": "1", "x-other": "ä: b"}})
        await agent.run("Hello.", model_settings={"extra_headers": {"x-mine": "2"}})
        await agent.run("Hello.")
        assert len(provider.transport.pids) == 1
    names = ("x-always", "x-mine", "x-other")
    assert [[call.headers.get(name) for name in names] for call in loopback.calls] == [
        ["yes", "1", "ä: b"],
        ["yes", "2", None],
        ["yes", None, None],
    ]


@pytest.mark.parametrize("header", [("x-mine", "1\nx-evil: 1"), ("x-evil: 1\nx-mine", "1"), ("x-api-key ", "stolen")])
async def test_a_header_cannot_bring_another(
    header: tuple[str, str], loopback: LoopbackServer, model: ClaudeCodeModel
) -> None:
    """MODEL-27"""
    with pytest.raises(ModelHTTPError, match=r"control character|cannot be a header name") as refused:
        await Agent(model).run("Hello.", model_settings={"extra_headers": dict([header])})
    assert refused.value.status_code == 400
    assert not loopback.calls


@pytest.mark.filterwarnings("ignore:.*rejected a replayed thinking")
async def test_thinking_that_the_api_rejects_is_left_out(
    loopback: LoopbackServer, provider: ClaudeCodeProvider
) -> None:
    """MODEL-20: where a model rejects thinking after a changed prefix, the API is asked once to drop it."""
    name = "claude-opus-5-5"
    bodies: list[list[dict[str, Any]]] = []
    async with AsyncAnthropic(api_key="key", base_url=loopback.url, max_retries=0) as client:
        direct = AnthropicModel(name, provider=AnthropicProvider(anthropic_client=client))
        for model in (direct, ClaudeCodeModel(name, provider=provider)):
            loopback.requests.clear()
            parts = [ThinkingPart("Hm.", signature="c2ln", provider_name=model.system), TextPart("Hello.")]
            history = [ModelRequest.user_text_prompt("Hi."), ModelResponse(parts, provider_name=model.system)]
            loopback.fail_next(400, message="messages.1.content.0: The block is bound to a different conversation.")
            assert (await Agent(model).run("Go on.", message_history=history)).output == 'You said: "Go on.".'
            await at_rest(provider)
            bodies.append(comparable([*loopback.requests]))
    expected, actual = bodies
    assert [body.get("thinking", {}).get("block_binding") for body in expected] == [
        None,
        {"prefix_mismatch_behavior": "drop_block"},
    ]
    # After this 400 the CLI may start a retry without the thinking; that retry is aborted.
    assert [body for body in actual if body["messages"][1]["content"][0]["type"] == "thinking"] == expected


@pytest.mark.deaths
@pytest.mark.parametrize("setting", ["request_timeout", "first_event_timeout", "timeout"])
async def test_a_timeout_ends_the_wait_and_the_next_run_is_normal(
    setting: str, loopback: LoopbackServer, model: ClaudeCodeModel, provider: ClaudeCodeProvider
) -> None:
    """MODEL-30"""
    agent = Agent(model)
    await agent.run("Warm up.")
    never = asyncio.Event()

    async def stall(body: dict[str, Any]) -> str:
        await never.wait()
        return "never"

    loopback.respond = stall
    settings: Any = {setting: SOON}
    with anyio.fail_after(NOT_FOR_EVER), pytest.raises(Exception, match=r"(?i)time") as caught:
        async with agent.run_stream("Hello.", model_settings=ModelSettings(**settings)):
            pass
    if setting != "timeout":
        assert isinstance(caught.value, ModelRequestTimeout)
    await at_rest(provider)

    loopback.respond = echo
    assert (await agent.run("Again.")).output == "You said: Again."
    [message] = comparable(loopback.requests[-1:])[0]["messages"]
    assert message == {"role": "user", "content": [{"type": "text", "text": "Again."}]}
