"""API failures under an engine: temporary failures are retried, all others end the question."""

from pathlib import Path
from typing import Any

import pytest

from cc_loopback import LoopbackServer

from .engines import ClientError, Engine
from .test_killed_workers import QUESTION, calls, one_tool_after_the_other, refunds, rounds

# As configured in the workers.
ATTEMPTS = 5


def test_an_overloaded_api_is_retried_and_no_tool_is_repeated(
    engine: Engine, loopback: LoopbackServer, folder: Path
) -> None:
    loopback.respond = one_tool_after_the_other
    loopback.fail_next(529)
    loopback.fail_next(429)
    worker = engine.start_worker("worker")
    engine.client("ask", engine.question, QUESTION)
    engine.client("pending", engine.question)
    loopback.fail_next(529)
    engine.client("decide", engine.question, "yes")

    assert engine.client("answer", engine.question) == "Done. Order 17 is paid back."
    assert rounds(loopback) == [1, 1, 1, 2, 3, 3]
    assert calls(folder) == ["find_order", "refund"]
    worker.stop()


def test_a_denied_call_does_not_run(engine: Engine, loopback: LoopbackServer, folder: Path) -> None:
    loopback.respond = one_tool_after_the_other
    worker = engine.start_worker("worker")
    engine.client("ask", engine.question, QUESTION)
    engine.client("pending", engine.question)
    engine.client("decide", engine.question, "no")

    assert "denied" in engine.client("answer", engine.question)
    assert calls(folder) == ["find_order"]
    assert refunds(folder) == []
    worker.stop()


def test_rejected_requests_are_not_retried_and_retries_of_failures_are_limited(
    engine: Engine, loopback: LoopbackServer
) -> None:
    def respond(body: dict[str, Any]) -> Any:
        return "Fine."

    loopback.respond = respond
    worker = engine.start_worker("worker")
    loopback.fail_next(400, message="that is wrong")
    with pytest.raises(ClientError, match="that is wrong"):
        ask_and_wait(engine, "refused")
    assert len(loopback.requests) == 1

    loopback.fail_next(529, times=ATTEMPTS)
    with pytest.raises(ClientError, match=r"overloaded|exceeded its maximum of 5 retries"):
        ask_and_wait(engine, "overloaded")
    assert len(loopback.requests) == 1 + ATTEMPTS

    assert ask_and_wait(engine, "good") == "Fine."
    worker.stop()


def ask_and_wait(engine: Engine, name: str) -> str:
    """Ask a question with a new id; return the answer."""
    question = f"{engine.question}-{name}"
    engine.client("ask", question, QUESTION)
    return engine.client("answer", question)
