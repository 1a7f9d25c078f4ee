"""An agent has the same results, API requests and streams with an engine as without."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessagesTypeAdapter

from both_ways import comparable, comparable_messages, comparable_value
from cc_loopback import LoopbackServer

from .apps.cases import CASES, respond
from .engines import Engine

APPS = Path(__file__).parent / "apps"
# Seconds between an answer's events, so that live events differ from collected events.
EVENT_DELAY = 0.03
# The long text has some 60 events. Delivered at the end, they would come within a few milliseconds.
STREAM_SECONDS = 0.5
# All cases need 20 seconds alone, and many times as long on a busy machine.
RUN_SECONDS = 400.0


@dataclass
class Seen:
    """The observed data when all cases run."""

    outcomes: dict[str, Any]
    bodies: list[dict[str, Any]]
    events: dict[str, list[str]]
    """Event kinds by case, in order."""
    stream_seconds: float
    """Seconds from the first to the last event of the long text."""
    watched: list[tuple[str, float]]
    """Events seen from outside, where that is supported."""


def run_all(name: str, env: Mapping[str, str]) -> Seen:
    """Run all cases in a new process."""
    with (
        LoopbackServer(respond, event_delay=EVENT_DELAY) as api,
        tempfile.NamedTemporaryFile("r", encoding="utf-8") as events,
    ):
        # The first case runs twice.
        api.fail_next(400, times=2, message="that is wrong")
        run = subprocess.run(
            [sys.executable, str(APPS / f"run_{name}.py")],
            env={**os.environ, **env, **api.env(), "EVENTS": events.name},
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
        )
        assert run.returncode == 0, run.stderr
        report = json.loads(run.stdout.splitlines()[-1])
        return _observed(report, [*api.requests], [json.loads(line) for line in events])


def _observed(report: dict[str, Any], bodies: list[dict[str, Any]], events: list[dict[str, Any]]) -> Seen:
    watched = report.get("watched", [])
    outcomes = report.get("outcomes", report)
    for outcome in outcomes.values():
        if "messages" not in outcome:  # an error, which contains the request id
            outcome.update(comparable_value(outcome))
            continue
        outcome["messages"] = comparable_messages(ModelMessagesTypeAdapter.validate_python(outcome["messages"]))
    kinds = {name: [event["kind"] for event in events if event["name"] == name] for name in CASES}
    times = [event["time"] for event in events if event["name"] == "text" and event["kind"] == "part_delta"]
    # The observed case comes last, and once more than without observers.
    requests = bodies[:-1] if watched else bodies
    return Seen(outcomes, comparable(requests), kinds, times[-1] - times[0], watched)


@pytest.fixture(scope="module")
def plain(engines_are_installed: None) -> Iterator[Seen]:
    yield run_all("plain", {})


def test_an_engine_makes_no_difference(engine: Engine, plain: Seen) -> None:
    """MODEL-184"""
    run = run_all(engine.name, engine.env)
    for name, outcome in plain.outcomes.items():
        assert run.outcomes[name] == outcome, name
    assert run.bodies == plain.bodies
    assert run.events == plain.events
    assert run.stream_seconds > STREAM_SECONDS
    if engine.name == "temporal":
        kinds = [kind for kind, _ in run.watched]
        assert kinds == [*plain.events["text"], "agent_run_result"]
        assert run.watched[-1][1] - run.watched[0][1] > STREAM_SECONDS


def test_the_cases_end_correctly_without_an_engine(plain: Seen) -> None:
    """The reference for the other test is itself correct."""
    outputs = {
        name: outcome.get("output", outcome.get("error"))
        for name, outcome in plain.outcomes.items()
        if not name.endswith("-streamed")
    }
    assert outputs == {
        "refused": "ModelRequestRejectedError",
        "text": "word " * 300,
        "by-id": "Hello.",
        "parallel-tools": "Fine.",
        "tool-retry": "Two.",
        "native-output": {"name": "Rome", "people": 3},
        "thinking": "Fine.",
        "image": "A pixel.",
        "deferred": "They say yes.",
    }
    assert plain.stream_seconds > STREAM_SECONDS
    assert {kind for kinds in plain.events.values() for kind in kinds} >= {"part_delta", "function_tool_result"}
