"""Errors have the framework's classes, and survive pickling between processes, as in durable engines."""

import asyncio
import pickle
from pathlib import Path

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import (
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelOverloadedError,
    UserError,
)

from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider

pytestmark = pytest.mark.worlds


def same(error: Exception) -> Exception:
    """Return the error after a round trip through another process."""
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    return copy


async def test_an_error_of_the_api_can_be_pickled(loopback: LoopbackServer, model: ClaudeCodeModel) -> None:
    """MODEL-49, MODEL-50"""
    failures: list[tuple[int, str | None, type[Exception]]] = [
        (529, None, ModelOverloadedError),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", ModelContextWindowExceededError),
    ]
    for status, message, error_class in failures:
        loopback.fail_next(status, message=message)
        with pytest.raises(error_class) as caught:
            await Agent(model).run("Hello.")
        error, copy = caught.value, same(caught.value)
        assert isinstance(error, ModelHTTPError)
        assert isinstance(copy, ModelHTTPError)
        assert (copy.status_code, copy.body, copy.hint) == (status, error.body, error.hint)


async def test_an_invalid_answer_of_the_api_is_a_connection_error(loopback: LoopbackServer) -> None:
    """MODEL-48, MODEL-49: the CLI reports no details, and nothing becomes output."""
    nonsense = [b"I am a proxy.\n", b"event: message_start\ndata: {nonsense\n\n", b""]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
        writer.write(head.encode() + nonsense[-1])
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    env = {**loopback.env(), "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"}
    async with server, ClaudeCodeProvider(env=env, max_retries=0) as provider:
        agent = Agent(ClaudeCodeModel(provider=provider))
        while nonsense:
            with pytest.raises(ModelConnectionError, match="can be reached, and try again") as caught:
                await agent.run("Hello.")
            same(caught.value)
            nonsense.pop()


async def test_the_error_of_a_missing_cli_can_be_pickled(loopback: LoopbackServer, tmp_path: Path) -> None:
    """MODEL-49, MODEL-50, MSG-35"""
    missing = tmp_path / "no-claude"
    missing.write_text("#!/bin/sh\n")
    missing.chmod(0o700)
    async with ClaudeCodeProvider(env=loopback.env(), cli_path=missing, max_retries=0) as provider:
        missing.unlink()
        with pytest.raises(UserError, match=f"{missing}. Leave cli_path out to run ") as caught:
            await Agent(ClaudeCodeModel(provider=provider)).run("Hello.")
    same(caught.value)
