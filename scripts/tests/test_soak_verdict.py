"""Causes for errors, and the final report."""

import json
import math

import pytest

from soak.faults import FAULTS
from soak.plan import Round
from soak.report import as_json, progress, summary
from soak.soak import Settings
from soak.totals import Totals
from soak.verdict import CONNECTION, NO_DESCRIPTOR, OTHER, RIGHT, TOOL, Ended, FaultRecord, Verdict, judge

SETTINGS = Settings(minutes=1, seed=7, at_once=8, pool=6, faults=tuple(FAULTS))


def ended(error: str, mark: str = "<1>", begun: float = 10.0, end: float = 12.0) -> Ended:
    return Ended("text", mark, begun, end, error, "words")


@pytest.mark.parametrize("error", ["429", CONNECTION, TOOL, NO_DESCRIPTOR, OTHER])
def test_only_a_right_answer_needs_no_cause(error: str) -> None:
    verdict = judge([ended(RIGHT), ended(error)], [])

    assert verdict.outcomes == {RIGHT: 1, error: 1}
    [broken] = verdict.broken
    assert error in broken


def test_fault_of_the_api_explains_errors_of_its_own_case_only() -> None:
    records, hits = [FaultRecord("429", 11, 11)], {"<1>": {0}}

    assert not judge([ended("429", "<1>")], records, hits).broken
    for end in (ended("429", "<2>"), ended("529", "<1>"), ended(CONNECTION, "<1>")):
        assert judge([end], records, hits).broken
    # An error event may be reported as a connection error.
    assert not judge([ended("529"), ended(CONNECTION)], [FaultRecord("event", 11, 11)], hits).broken


def test_each_kill_explains_one_error_in_a_running_case_that_needs_it() -> None:
    kill, later = FaultRecord("kill", 11, 11), FaultRecord("kill", 14, 14)
    two = [ended(CONNECTION, "<1>", 10, 20), ended(CONNECTION, "<2>", 10.5, 12)]

    assert judge([ended(CONNECTION)], [kill]).causes == {"kill": 1}
    assert len(judge(two, [kill]).broken) == 1
    assert judge(two, [kill, later]).causes == {"kill": 2}
    # Before a case starts, and after it ends.
    assert judge([ended(CONNECTION)], [FaultRecord("kill", 5, 5), FaultRecord("kill", 12.5, 12.5)]).broken


def test_a_lasting_fault_explains_the_errors_of_its_time() -> None:
    on = FaultRecord("api", 9, math.inf)

    assert not judge([ended(CONNECTION, "<1>"), ended(CONNECTION, "<2>")], [on]).broken
    assert judge([ended("429")], [on]).broken
    assert judge([ended(CONNECTION, begun=1, end=8)], [on]).broken


def test_wrong_answer_is_never_explained() -> None:
    records = [FaultRecord(fault, 0, math.inf) for fault in FAULTS]
    hits = {"<1>": set(range(len(records)))}

    assert judge([ended(OTHER)], records, hits).broken


def totals_of_two() -> Totals:
    totals = Totals(seconds=2.0, rounds=1)
    totals.count([ended(RIGHT), ended("429", "<2>")], Verdict())
    totals.outcomes.update({RIGHT: 1, "429": 1})
    totals.done.update({"429": 3})
    totals.caused.update({"429": 1})
    return totals


def test_summary_has_the_figures_and_a_command_to_reproduce_violations() -> None:
    totals = totals_of_two()
    printed = summary(SETTINGS, totals, "tmpfs")

    assert "2 runs (1.0/s) in 2 cases and 1 rounds" in printed
    assert "violated invariants: 0" in printed
    assert "To reproduce" not in printed
    assert "round 3 (429)" in progress(totals, Round(3, ("429",), 10, ends_processes=False))

    totals.breaks(4, ["one", "two"] * 500)
    assert (totals.broken_count, len(totals.broken) < 100) == (1_000, True)
    printed = summary(SETTINGS, totals, "none")
    assert "uv run scripts/soak --seed 7 --round 4 --minutes 1 " in printed
    assert "  round 4: two" in printed


def test_json_has_the_figures() -> None:
    figures = json.loads(as_json(SETTINGS, totals_of_two(), "tmpfs"))

    assert [figures[name] for name in ("seed", "cases", "runs", "right", "broken")] == [7, 2, 2, 1, []]
    assert figures["faults"]["429"] == {"done": 3, "errors": 1}
    assert figures["kinds"]["text"] == {"cases": 2, "runs": 2, "right": 1, "slowest": 2.0}
