"""All CLI messages for `message_callback`, in order, for every kind of request."""

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from claude_agent_sdk import AssistantMessage, Message, ResultMessage, StreamEvent
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelConnectionError
from pydantic_ai.messages import ModelMessage, ModelRequest
from pydantic_ai.models import ModelRequestParameters

from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider
from cc_session.internals import bundled_cli

PROMPT: list[ModelMessage] = [ModelRequest.user_text_prompt("Hello.")]


def kinds(messages: list[Message]) -> set[type[Message]]:
    return {type(message) for message in messages}


async def test_the_callback_gets_every_message_up_to_the_result(provider: ClaudeCodeProvider) -> None:
    """MODEL-81: for runs, streams and requests with metadata, when they have returned."""
    messages: list[Message] = []
    agent = Agent(model := ClaudeCodeModel(provider=provider, message_callback=messages.append))
    for number in range(4):
        messages.clear()
        if number == 0:
            await agent.run("Hello.")
        elif number == 1:
            async with agent.run_stream("Hello.") as result:
                await result.get_output()
        elif number == 2:
            await model.request_with_metadata(PROMPT, None, ModelRequestParameters())
        else:
            streamed = [message async for message in model.stream_messages(PROMPT, None, ModelRequestParameters())]
            assert messages == streamed
        assert kinds(messages) >= {AssistantMessage, StreamEvent, ResultMessage}
        assert [isinstance(message, ResultMessage) for message in messages].index(True) == len(messages) - 1


async def test_a_stream_that_is_left_early_has_its_result_too() -> None:
    """MODEL-81: a moment later."""
    messages: list[Message] = []
    ended = asyncio.Event()

    def take(message: Message) -> None:
        messages.append(message)
        if isinstance(message, ResultMessage):
            ended.set()

    with LoopbackServer(event_delay=0.02) as slow:
        async with ClaudeCodeProvider(env=slow.env(), max_retries=0) as provider:
            agent = Agent(ClaudeCodeModel(provider=provider, message_callback=take))
            async with agent.run_stream("one two three four five six seven eight nine ten") as result:
                async for _ in result.stream_text(debounce_by=None):
                    break
            await asyncio.wait_for(ended.wait(), 20)
    assert isinstance(messages[-1], ResultMessage)


async def test_a_coroutine_is_awaited_before_the_next_message(provider: ClaudeCodeProvider) -> None:
    """MODEL-81"""
    messages: list[Message] = []
    inside = 0

    async def slowly(message: Message) -> None:
        nonlocal inside
        inside += 1
        await asyncio.sleep(0.01)
        assert inside == 1
        inside -= 1
        messages.append(message)

    await Agent(ClaudeCodeModel(provider=provider, message_callback=slowly)).run("Hello.")
    assert isinstance(messages[-1], ResultMessage)


async def test_an_exception_of_the_callback_is_logged_and_changes_nothing(
    provider: ClaudeCodeProvider, caplog: pytest.LogCaptureFixture
) -> None:
    def raising(message: Message) -> None:
        raise ValueError("made-up")

    async def raising_later(message: Message) -> None:
        raise ValueError("made-up")

    for callback in (raising, raising_later):
        with caplog.at_level(logging.ERROR):
            caplog.clear()
            result = await Agent(ClaudeCodeModel(provider=provider, message_callback=callback)).run("Hello.")
            assert result.output
            assert "The callback for messages failed" in caplog.text


@pytest.fixture
async def without_result(
    shared_api: LoopbackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ClaudeCodeProvider]:
    """Yield processes whose answers are complete, but never followed by a `ResultMessage`."""
    cli = tmp_path / "claude"
    cli.write_text(f'#!/bin/sh\n\'{bundled_cli()}\' "$@" | grep --line-buffered -v \'"type":"result"\'\n')
    cli.chmod(0o700)
    monkeypatch.setattr("cc_model.transcript._RESULT_SECONDS", 0.1)
    async with ClaudeCodeProvider(env=shared_api.env(), cli_path=cli, max_retries=0) as provider:
        yield provider


@pytest.mark.deaths
async def test_a_complete_answer_is_not_lost_with_the_result(
    without_result: ClaudeCodeProvider, caplog: pytest.LogCaptureFixture
) -> None:
    """MODEL-99: the callback lacks the `ResultMessage`, which is logged; where it is returned, there is an error."""
    messages: list[Message] = []
    model = ClaudeCodeModel(provider=without_result, message_callback=messages.append)
    assert (await Agent(model).run("Hello.")).output
    assert "Claude Code sent no result within 0.1 seconds" in caplog.text
    assert AssistantMessage in kinds(messages)
    assert ResultMessage not in kinds(messages)
    with pytest.raises(ModelConnectionError, match="Claude Code sent no result"):
        await model.request_with_metadata(PROMPT, None, ModelRequestParameters())
