"""A worker is killed; another continues, and nothing is lost. At most the running step is repeated."""

import asyncio
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cc_loopback import LoopbackServer

from .engines import Engine

QUESTION = "Please pay order 17 back."
# Seconds. A worker's first step may take long on a busy machine.
_PATIENCE_SECONDS = 200.0


def one_tool_after_the_other(body: dict[str, Any]) -> Any:
    """Look the order up, refund it, and answer with the tool results."""
    match [message for message in body["messages"] if message["role"] == "assistant"]:
        case []:
            return [{"type": "tool_use", "name": "find_order", "input": {"number": 17}}]
        case [_]:
            return [{"type": "tool_use", "name": "refund", "input": {"number": 17}}]
        case _:
            [result] = body["messages"][-1]["content"]
            return f"Done. {result['content'][0]['text']}"


def rounds(api: LoopbackServer) -> list[int]:
    """Return the round number for each request."""
    return [sum(message["role"] == "assistant" for message in body["messages"]) + 1 for body in api.requests]


def calls(folder: Path) -> list[str]:
    """Return the called tools, in order."""
    with closing(sqlite3.connect(folder / "shop.sqlite", timeout=30)) as shop:
        return [tool for (tool,) in shop.execute("SELECT tool FROM calls ORDER BY rowid")]


def refunds(folder: Path) -> list[int]:
    """Return the refunded orders."""
    with closing(sqlite3.connect(folder / "shop.sqlite", timeout=30)) as shop:
        return [number for (number,) in shop.execute("SELECT number FROM refunds")]


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_killed_between_two_requests_nothing_is_repeated(
    engine: Engine, loopback: LoopbackServer, folder: Path
) -> None:
    """ARCH-06, MODEL-84"""
    loopback.respond = one_tool_after_the_other
    first = engine.start_worker("first")
    engine.client("ask", engine.question, QUESTION)
    engine.client("pending", engine.question)
    first.kill()
    second = engine.start_worker("second")
    if engine.name != "prefect":  # Prefect's worker had suspended the run, so no take-over is needed
        engine.take_over(engine.question, first)
    engine.client("decide", engine.question, "yes")

    assert engine.client("answer", engine.question) == "Done. Order 17 is paid back."
    assert rounds(loopback) == [1, 2, 3]
    assert calls(folder) == ["find_order", "refund"]
    assert refunds(folder) == [17]
    second.stop()


def test_killed_while_the_api_answers_that_request_is_repeated(
    engine: Engine, loopback: LoopbackServer, folder: Path
) -> None:
    """MODEL-84"""

    async def respond(body: dict[str, Any]) -> Any:
        if rounds(loopback) == [1, 2]:
            await asyncio.sleep(_PATIENCE_SECONDS)
        return one_tool_after_the_other(body)

    loopback.respond = respond
    first = engine.start_worker("first")
    engine.client("ask", engine.question, QUESTION)
    eventually(lambda: len(loopback.requests) == 2)
    first.kill()
    second = engine.start_worker("second")
    engine.take_over(engine.question, first)
    engine.client("pending", engine.question)
    engine.client("decide", engine.question, "yes")

    assert engine.client("answer", engine.question) == "Done. Order 17 is paid back."
    assert rounds(loopback) == [1, 2, 2, 3]
    assert calls(folder) == ["find_order", "refund"]
    second.stop()


def test_killed_during_a_tool_that_call_is_repeated_and_takes_effect_once(
    engine: Engine, loopback: LoopbackServer, folder: Path
) -> None:
    loopback.respond = one_tool_after_the_other
    first = engine.start_worker("first")
    engine.client("ask", engine.question, QUESTION)
    engine.client("pending", engine.question)
    first.kill()
    slow = engine.start_worker("slow", TOOL_SECONDS="300")
    if engine.name != "prefect":
        engine.take_over(engine.question, first)
    engine.client("decide", engine.question, "yes")
    eventually(lambda: calls(folder) == ["find_order", "refund"])
    slow.kill()
    last = engine.start_worker("last")
    engine.take_over(engine.question, slow)

    assert engine.client("answer", engine.question) == "Done. Order 17 is paid back."
    assert rounds(loopback) == [1, 2, 3]
    assert calls(folder) == ["find_order", "refund", "refund"]
    assert refunds(folder) == [17]
    last.stop()


@pytest.mark.parametrize("engine", ["dbos-postgres"], indirect=True)
def test_a_restarted_worker_of_dbos_continues_under_its_name(engine: Engine, loopback: LoopbackServer) -> None:
    loopback.respond = one_tool_after_the_other
    worker = engine.start_worker("one")
    engine.client("ask", engine.question, QUESTION)
    engine.client("pending", engine.question)
    worker.kill()
    engine.client("decide", engine.question, "yes")
    worker = engine.start_worker("one")

    assert engine.client("answer", engine.question) == "Done. Order 17 is paid back."
    assert rounds(loopback) == [1, 2, 3]
    worker.stop()


def test_questions_are_shared_by_workers_with_a_process_each(engine: Engine, loopback: LoopbackServer) -> None:
    def respond(body: dict[str, Any]) -> Any:
        return "You asked: " + body["messages"][-1]["content"][-1]["text"]

    loopback.respond = respond
    workers = [engine.start_worker(name, CLAUDE_PROCESSES="1") for name in ("one", "two")]
    questions = [f"{engine.question}-{number}" for number in range(6)]
    for question in questions:
        engine.client("ask", question, f"What is {question}?")

    for question in questions:
        assert engine.client("answer", question) == f"You asked: What is {question}?"
    assert len(loopback.requests) == len(questions)
    for worker in workers:
        worker.stop()
