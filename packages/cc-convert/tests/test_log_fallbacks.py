"""Requests that one model declined in the middle, and another model finished."""

import json
from pathlib import Path
from typing import Any

import pytest

from cc_convert.logs import Logs, Row, read_logs
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
    assert not any(compared.difference)
    # The CLI has the requested model's price for the whole request.
    assert compared.cost > compared.stated_cost + 0.03


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


def test_an_archive_and_a_second_reading_keep_the_parts(log: Any, run: Any, tmp_path: Path) -> None:
    """LOG-36, LOG-44, LOG-06"""
    finished_by_another(log, 33)
    whole = read_logs(log.write())
    run("convert", log.path, "-o", tmp_path / "old.jsonl")

    assert costs(read_logs(tmp_path / "old.jsonl", log.path)) == costs(whole)
