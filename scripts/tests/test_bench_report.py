"""Reports of the benchmarks: tables and JSON."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace

import pytest

from bench.harness.figures import Bound, Figure, Machine
from bench.harness.report import NOTE, as_json, number, show

MACHINE = Machine(date="2026-11-20 12:00", cpus=2, python="3.11.7", cli="2.1.329", load=0.5)
FLOOR = Figure("text", "Warm run", "AnthropicModel", "ms", 9, 10.0, 12.0)
OURS = Figure("text", "Warm run", "ClaudeCodeModel", "ms", 9, 25.0, 31.0, 2.5, Bound("ratio", 3.0))


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.01234, "0.012"), (1.234, "1.23"), (12.34, "12.3"), (123.4, "123"), (12345.6, "12,346"), (-1642.0, "-1,642")],
)
def test_numbers_have_three_significant_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_the_table_shows_a_ratio_and_a_missed_bound(capsys: pytest.CaptureFixture[str]) -> None:
    missed = replace(OURS, name="Claude[red]", bound=Bound("ratio", 2.0))
    show([FLOOR, OURS, missed, replace(FLOOR, group="Bytes", n=1)])
    printed = capsys.readouterr().out

    assert [title for title in ("Warm run", "Bytes") if title in printed] == ["Warm run", "Bytes"]
    assert re.search(r"AnthropicModel +10\.0 ms +12\.0 +9 *\n", printed)
    assert re.search(r"AnthropicModel +10\.0 ms +1 *\n", printed)
    assert re.search(r"ClaudeCodeModel +25\.0 ms +31\.0 +9 +2\.50 +at most 3 times the floor *\n", printed)
    assert re.search(r"Claude\[red\] .* at most 2 times the floor, MISSED *\n", printed)

    show([missed], judged=False)
    assert "MISSED" not in capsys.readouterr().out


def test_the_json_has_every_field() -> None:
    found = json.loads(as_json([FLOOR, OURS], MACHINE, ["A note."]))

    assert found["machine"] == asdict(MACHINE)
    assert found["notes"] == [NOTE, "A note."]
    assert found["figures"][1] == {
        "suite": "text", "group": "Warm run", "name": "ClaudeCodeModel", "unit": "ms", "n": 9, "median": 25.0,
        "p90": 31.0, "ratio": 2.5, "bound": {"of": "ratio", "limit": 3.0, "least": False}, "kept": True,
    }  # fmt: skip
    assert found["figures"][0]["kept"] is None
