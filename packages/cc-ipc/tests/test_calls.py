"""Calls, from request to response: every call gets an answer."""

import asyncio
import contextvars
import logging
from pathlib import Path
from typing import Any

import pytest

from cc_ipc import MAX_MESSAGE_SIZE, CurrentCall, IPCServer, ToolHandler, current_call
from cc_ipc.calls import answer

from .conftest import Connect, Tools, call, happens, text


async def answer_of(handler: ToolHandler, path: Path, connect: Connect) -> Any:
    """Call a handler, and return the response."""
    async with IPCServer(path, {"tool": handler}):
        return await (await connect(path)).request(call("tool"))


@pytest.mark.parametrize(
    ("result", "kind", "message"),
    [
        ("sunny", "InvalidToolResultError", "it is a str"),
        *(
            ({"content": [], "structuredContent": {"value": value}}, "UnencodableMessageError", "")
            for value in (float("nan"), {1, 2}, "\ud800")
        ),
        (text("a" * MAX_MESSAGE_SIZE), "LocalMessageSizeError", "at most 10,485,760"),
    ],
    ids=["nonsense", "nan", "set", "half a character", "too large"],
)
async def test_a_result_that_cannot_be_sent_is_an_error(
    folder: Path, raw_peer: Connect, result: Any, kind: str, message: str
) -> None:
    """IPC-P-21, IPC-P-E02, IPC-D-16: the sender detects it, and the model reads it."""

    async def handler(arguments: dict[str, object]) -> Any:
        return result

    response = await answer_of(handler, folder / "s", raw_peer)
    assert response["error"]["type"] == kind
    assert message in response["error"]["message"]


class Wordless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even that")


class Panic(BaseException):
    """An exception as from a Rust extension, which `except Exception` does not catch."""


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (KeyError(), "KeyError", "no message"),
        (Wordless(), "Wordless", "no message"),
        (SystemExit(3), "SystemExit", "3"),
        (Panic("index out of bounds"), "Panic", "index out of bounds"),
        (asyncio.CancelledError(), "CancelledError", "no message"),
        (TimeoutError("its own"), "TimeoutError", "its own"),
        (OSError("\ud800"), "OSError", "\\ud800"),
        (ValueError("a" * 30_000), "ValueError", "a" * 20_000 + "…"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
async def test_every_exception_of_a_tool_is_answered(
    folder: Path, raw_peer: Connect, caplog: pytest.LogCaptureFixture, error: BaseException, kind: str, message: str
) -> None:
    """IPC-P-21, IPC-P-18: even if a handler cancels itself, raises without a message, or raises no `Exception`."""
    caplog.set_level(logging.CRITICAL, "cc_ipc")  # pytest-xdist cannot transfer a lone surrogate in the log

    async def handler(arguments: dict[str, object]) -> dict[str, object]:
        raise error

    response = await answer_of(handler, folder / "s", raw_peer)
    assert response == {"error": {"message": message, "type": kind}}


def test_an_interrupt_of_a_tool_ends_the_event_loop() -> None:
    """IPC-P-21: it is meant for the process."""

    async def interrupted(arguments: dict[str, object]) -> dict[str, object]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(answer({"name": "tool", "arguments": {}}, {"tool": interrupted}, None))


async def test_a_tool_over_its_time_limit_is_an_error_and_others_continue(
    tools: Tools, folder: Path, raw_peer: Connect
) -> None:
    """IPC-P-21: a handler that waits for ever."""
    async with IPCServer(folder / "s", tools.handlers, tool_timeout=0.05) as server:
        slow, quick = await raw_peer(server.socket_path), await raw_peer(server.socket_path)
        slow.send(call("wait"))
        await happens(tools.started)
        assert "result" in await quick.request(call("echo"))
        response = await slow.receive()
    message = "the tool 'wait' did not answer within 0.05 seconds"
    assert response["error"] == {"type": "TimeoutError", "message": message}
    assert tools.cancelled.is_set()


async def test_a_handler_has_its_call_and_the_context_of_the_start(
    folder: Path, raw_peer: Connect, tools: Tools
) -> None:
    """IPC-P-38, IPC-P-51: the model's id for the call, and the caller's dependencies."""
    who = contextvars.ContextVar("who", default="nobody")
    contexts: list[object] = []

    async def handler(arguments: dict[str, object]) -> dict[str, object]:
        contexts.extend([current_call(), who.get(), asyncio.get_running_loop()])
        who.set("a handler")
        return {"content": []}

    who.set("the caller")
    async with IPCServer(folder / "s", {"tool": handler}) as server:
        peer = await raw_peer(server.socket_path)
        await peer.request(call("tool", tool_use_id="toolu_1"))
        await peer.request(call("tool"))
    loop = asyncio.get_running_loop()
    assert contexts == [
        CurrentCall("tool", "toolu_1"),
        "the caller",
        loop,
        CurrentCall("tool", None),
        "the caller",
        loop,
    ]
    assert current_call() is None
