"""Requests that one model declined in the middle, and another model finished."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from cc_convert.logs import Logs, Prices, Row, read_logs
from cc_convert.reconcile import reconcile

RECORD = Path(__file__).parent / "transcripts" / "fallback"
DECLINED = (900 * 2 + 33 * 10) / 1e6
ONE = (100, 20, 1000, 200, 100)


def tokens(rows: list[Row]) -> list[int]:
    return [sum(column) for column in zip(*(row[9:14] for row in rows), strict=True)]


def finished_by_another(log: Any, output: int, *, model: str | None = "claude-fable-5") -> None:
    counts = log.usage()
    first = {"type": "message", "model": model, "input_tokens": 900, "output_tokens": output}
    parts = [first, {"type": "fallback_message", "model": "claude-opus-5", **counts}]
    log.answer("msg_1", model="claude-opus-5", usage=log.usage(iterations=parts), requestedModel="claude-fable-5")


def costs(logs: Logs) -> dict[str, float | None]:
    return {row.key: row.cost for row in logs.priced()}


@pytest.mark.parametrize("strict", [False, True])
def test_each_part_of_a_fallback_turn_has_its_own_price(strict: bool) -> None:
    """LOG-36: the CLI notes them under the requested model, in a total with a sub-agent and a compaction."""
    logs = read_logs(RECORD, strict=strict)

    [served] = json.loads((RECORD / "served.json").read_text("utf-8")).values()
    parts = [row for row in logs.rows if row.kind == "declined"]
    assert tokens([row for row in logs.rows if row.kind != "declined"]) == served
    assert [(row.model, row.input, row.output) for row in parts] == [("claude-sonnet-5", 900, 33)] * 2
    assert [cost for key, cost in costs(logs).items() if "declined" in key] == [pytest.approx(DECLINED)] * 2
    assert [row.model for row in logs.rows if row.key in ("msg_000006", "msg_000007")] == ["claude-opus-5"] * 2
    [compared] = reconcile(logs)
    assert not any(compared.difference.counts)
    # The CLI has the requested model's price for the whole request.
    assert compared.logged.cost > compared.stated.cost + 0.03


@pytest.mark.parametrize("booked", ["claude-opus-5", "claude-fable-5"])
def test_a_total_under_either_model_counts_the_request_once(log: Any, booked: str) -> None:
    """LOG-36"""
    finished_by_another(log, 33)
    log.state({booked: (*ONE, 0.01)})

    logs = read_logs(log.write())

    assert [(row.kind, row.model) for row in logs.rows] == [
        ("declined", "claude-fable-5"), ("request", "claude-opus-5")
    ]  # fmt: skip


@pytest.mark.parametrize("model", ["claude-fable-5", None])
def test_a_part_without_output_is_not_billed(log: Any, run: Any, model: str | None) -> None:
    """LOG-36: nor is it a request; without a named model, it belongs to the requested model."""
    finished_by_another(log, 0, model=model)

    logs = read_logs(log.write())

    assert costs(logs)["msg_1:declined:0"] == 0.0
    assert tokens(logs.rows) == [*ONE]
    assert run("report", log.path, "--format", "json").json["total"]["requests"] == 1


def test_a_fallback_of_a_killed_process_is_in_no_later_total(log: Any) -> None:
    """LOG-36, LOG-32: the total equals the request after it."""
    finished_by_another(log, 33)
    log.answer("msg_2", model="claude-fable-5")
    start = datetime.fromisoformat("2026-11-20T10:01:30Z").timestamp()
    log.state({"claude-fable-5": (*ONE, 0.01)}, startTime=int(start * 1000), totalDuration=40_000)

    logs = read_logs(log.write())

    assert [(row.key, row.kind) for row in logs.rows] == [
        ("msg_1:declined:0", "declined"), ("msg_1", "request"), ("msg_2", "request")
    ]  # fmt: skip
    [compared] = reconcile(logs)
    assert (any(compared.difference.counts), compared.outside[:5]) == (False, ONE)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("has_total", [False, True])
def test_an_advisors_part_counts_once_under_its_model(log: Any, run: Any, strict: bool, has_total: bool) -> None:
    """LOG-38: also of a process that noted no total; the CLI's total has it."""
    advice = {"type": "advisor_message", "model": "claude-opus-5", "input_tokens": 7000, "output_tokens": 300}
    parts = [{"type": "message", "model": "claude-sonnet-5", **log.usage()}, advice]
    log.answer("msg_1", usage=log.usage(iterations=parts, speed="fast"))
    if has_total:
        log.state({"claude-sonnet-5": (*ONE, 0.0013), "claude-opus-5": (7000, 300, 0, 0, 0, 0.0425)})

    logs = read_logs(log.write(), strict=strict)

    assert [(row.kind, row.model, row[9:14]) for row in logs.rows] == [
        ("advice", "claude-opus-5", (7000, 300, 0, 0, 0)), ("request", "claude-sonnet-5", ONE)
    ]  # fmt: skip
    assert costs(logs)["msg_1:advice:0"] == pytest.approx(0.0425)
    assert all(compared.agrees for compared in reconcile(logs))
    report = run("report", "model", log.path, "--format", "json").json
    assert (report["total"]["requests"], report["total"]["input"]) == (1, 7100)


def test_an_advisors_part_that_a_result_states_too_counts_once(log: Any, maker: Any, tmp_path: Path) -> None:
    """LOG-38: a transcript without totals, and the turn's stream-json."""
    advice = {"type": "advisor_message", "model": "claude-opus-5", "input_tokens": 7000, "output_tokens": 300}
    parts = [{"type": "message", "model": "claude-sonnet-5", **log.usage()}, advice]
    log.answer("msg_1", usage=log.usage(iterations=parts))
    stream = maker()
    stream.stream("msg_1")
    stream.result("r1", (*ONE, 0.0013), (*ONE, 0.0013))
    for name in ("modelUsage", "model_usage_since_last_result"):
        usage = {"inputTokens": 7000, "outputTokens": 300, "costUSD": 0.0425}
        stream.lines[-1][name]["claude-opus-5"] = usage

    logs = read_logs(log.write(), stream.write(tmp_path / "stream.jsonl"))

    assert tokens(logs.rows) == [7100, 320, 1000, 200, 100]
    assert all(compared.agrees for compared in reconcile(logs))


def test_a_compaction_by_the_api_is_added_to_its_request(log: Any) -> None:
    """LOG-38: the request's counts and the CLI's total leave it out."""
    parts = [{"type": "compaction", "input_tokens": 9000, "output_tokens": 400}, {"type": "message", **log.usage()}]
    log.answer("msg_1", usage=log.usage(iterations=parts))
    log.state({"claude-sonnet-5": (*ONE, 0.0013)})

    logs = read_logs(log.write())

    assert tokens(logs.rows) == [9100, 420, 1000, 200, 100]
    [compared] = reconcile(logs)
    assert compared.agrees


@pytest.mark.parametrize("answered", ["claude-sonnet-5-eu-gw", "gpt-9", "claude-haiku-4-5", "claude-opus-5"])
@pytest.mark.parametrize("requested", [{}, {"requestedModel": "claude-sonnet-5"}])
def test_a_request_answered_under_another_name_counts_once(log: Any, answered: str, requested: dict[str, str]) -> None:
    """LOG-39: with a compaction in the total, and a model that is in it under its own name."""
    log.answer("msg_1", model=answered, **requested)
    log.answer("msg_2", model="claude-opus-5")
    log.compaction(8000)
    log.answer("msg_3", model=answered, **requested)
    is_told = bool(requested) or answered != "claude-opus-5"
    log.state({"claude-sonnet-5": (300, 60, 3000, 600, 300, 0.0045), "claude-opus-5": (*ONE, 0.003)})

    logs = read_logs(log.write())

    if is_told:
        assert tokens(logs.rows) == [4 * count for count in ONE]
        assert [(row.kind, row.model) for row in logs.rows if row.kind != "request"] == [
            ("unlogged", "claude-sonnet-5")
        ]
    assert all(not any(one.difference.counts) for one in reconcile(logs)) == is_told
    if answered not in ("claude-haiku-4-5", "claude-opus-5"):
        price = Prices().cost_of((*ONE, 0, 0), "claude-sonnet-5")
        assert [row.cost for row in logs.priced() if row.model == answered] == [price, price]


@pytest.mark.parametrize("kind", ["delta", "sum"])
def test_a_stream_answered_under_another_name_counts_once(log: Any, kind: str) -> None:
    """LOG-39: a stream has no requested model, and only the first counts."""
    log.stream("msg_1", model="claude-sonnet-5-eu-gw")
    log.result("r1", (*ONE, 0.0015), (*ONE, 0.0015) if kind == "delta" else None)

    logs = read_logs(log.write())

    assert [(row.kind, row[9:14]) for row in logs.rows] == [("request", ONE)]
    assert all(one.agrees for one in reconcile(logs))
