"""Failures of the API under an engine: what may pass is tried again by it, and the rest ends the question."""

from pathlib import Path
from typing import Any

import pytest

from cc_loopback import LoopbackServer

from .engines import ClientError, Engine
from .test_killed_workers import QUESTION, calls, one_tool_after_the_other, refunds, rounds

# DBOS repeats a step whatever it failed for.
ATTEMPTS = {"dbos": 5, "temporal": 1, "prefect": 1}


def test_an_overloaded_api_is_asked_again_and_no_tool_is_repeated(
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


def test_what_is_denied_is_not_done(engine: Engine, loopback: LoopbackServer, folder: Path) -> None:
    loopback.respond = one_tool_after_the_other
    worker = engine.start_worker("worker")
    engine.client("ask", engine.question, QUESTION)
    engine.client("pending", engine.question)
    engine.client("decide", engine.question, "no")

    assert "denied" in engine.client("answer", engine.question)
    assert calls(folder) == ["find_order"]
    assert refunds(folder) == []
    worker.stop()


def test_a_wrong_request_ends_the_question_with_the_error_and_the_worker_goes_on(
    engine: Engine, loopback: LoopbackServer
) -> None:
    def respond(body: dict[str, Any]) -> Any:
        return "Fine."

    loopback.respond = respond
    loopback.fail_next(400, times=ATTEMPTS[engine.name], message="that is wrong")
    worker = engine.start_worker("worker")
    engine.client("ask", engine.question, QUESTION)
    with pytest.raises(ClientError, match="that is wrong"):
        engine.client("answer", engine.question)
    assert len(loopback.requests) == ATTEMPTS[engine.name]

    engine.client("ask", f"{engine.question}-2", QUESTION)
    assert engine.client("answer", f"{engine.question}-2") == "Fine."
    worker.stop()
