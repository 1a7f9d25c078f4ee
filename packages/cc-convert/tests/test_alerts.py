"""Alerts on costs and on a plan's windows."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from cc_convert.cli import main
from cc_convert.cli.watch import Picture
from cc_convert.logs import Amounts
from cc_convert.report.alerts import AlertError, excesses, parse_alert
from cc_convert.report.forecast import WindowUse
from cc_convert.report.lines import Line

Maker: TypeAlias = Callable[..., Any]
Run: TypeAlias = Callable[..., Any]


def test_a_budget_is_an_exit_code_of_a_report(run: Run, maker: Maker, tmp_path: Path) -> None:
    """LOG-98: by day, project, or in all, and with filters; the report itself is the same."""
    for number, project in enumerate(("shop", "blog")):
        log = maker(f"s{number}", project=f"/home/user/{project}")
        log.answers(*(f"msg_{project}_{count}" for count in range(3 + number)))
        log.write(tmp_path / f"{number}.jsonl")

    table = run("report", tmp_path).out

    def tried(*alerts: str) -> tuple[int, str]:
        done = run("report", tmp_path, *(word for alert in alerts for word in ("--alert", alert)))
        assert done.out == table
        return done.code, done.err

    assert tried("day>$20") == (0, "")
    code, message = tried("day>$0.01")
    assert (code, message) == (1, "alert: day 2026-11-20: $0.010500 is more than $0.01\n")
    code, message = tried("project>0.005")
    assert (code, message) == (1, "alert: project /home/user/blog: $0.0060 is more than $0.0050\n")
    assert tried("project:*/shop>0.005") == (0, "")
    assert tried("total>0.001", "day>9")[1] == "alert: total: $0.01 is more than $0.0010\n"
    assert run("report", tmp_path, "--project", "shop", "--alert", "total>0.005").code == 0


def test_alerts_on_windows_and_costs_are_parsed() -> None:
    """LOG-98"""
    windows = [WindowUse("five_hour", 0.0, 0.83, None), WindowUse("seven_day", 0.0, 0.2, None)]
    line = Line("2026-11-23", Amounts(cost=21.0), unpriced=3)
    alerts = [parse_alert(text) for text in ("5h>80%", "7d > 80%", "day>$20", "day>21", "day:2026-11-2?>20.5")]

    above = excesses(alerts, lambda _: [line], windows)

    assert [excess.message for excess in above] == [
        "5h: 83% is more than 80%",
        "day 2026-11-23: $21.00* is more than $20.00",
        "day 2026-11-23: cannot be judged: $21.00*, and 3 tokens have no price",
        "day 2026-11-23: $21.00* is more than $20.50",
    ]
    share = [WindowUse("five_hour", 0.0, 0.804, None)]
    costs = [Line("2026-11-23", Amounts(cost=0.149928))]
    above = excesses([parse_alert("5h>80%"), parse_alert("day>$0.149")], lambda _: costs, share)
    assert [excess.message for excess in above] == [
        "5h: 80.4% is more than 80%",
        "day 2026-11-23: $0.15 is more than $0.149",
    ]
    for text in ("", "5h", "5h>$80", "day>80%", "5h:x>80%", "year>3", "day>-3", "day<3"):
        with pytest.raises(AlertError, match="is not an alert"):
            parse_alert(text)


@pytest.mark.parametrize("alert", ["project>$0.001", "project:*/shap>$5"])
def test_alerts_and_notes_show_no_control_characters(run: Run, log: Any, alert: str) -> None:
    """LOG-98, LOG-100"""
    log.project = "/home/user\x1b[2J/shop"
    log.answer(timestamp=datetime.now(UTC).isoformat())
    path = log.write()

    for done in (run("watch", path, "--once", "--alert", alert), run("report", path, "--alert", alert)):
        assert "/home/user\N{REPLACEMENT CHARACTER}[2J/shop" in done.out + done.err
        assert "\x1b" not in done.out + done.err


def test_a_value_is_told_again_only_after_it_was_below(log: Any, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """LOG-98"""
    log.answer(timestamp=datetime.now(UTC).isoformat())
    path = log.write()
    above = excesses([parse_alert("day>1")], lambda _: [Line("2026-11-23", Amounts(cost=2.0))])
    pictures = iter([above, above, [], above])

    def next_picture(*_: object) -> Picture:
        return Picture("", next(pictures))

    monkeypatch.setattr("cc_convert.cli.watch.picture", next_picture)
    monkeypatch.setattr("cc_convert.cli.watch._LEAST_INTERVAL", 0.0)

    with pytest.raises(StopIteration):
        main(["watch", str(path), "--json", "--interval", "0"])

    assert capsys.readouterr().out.count('"day>1"') == 2


def test_a_budget_that_cannot_be_judged_is_a_finding(run: Run, log: Any) -> None:
    """LOG-98, LOG-100: with tokens that have no price, or a name that is nowhere in the logs."""
    log.answer(usage={"input_tokens": 1_000_000, "output_tokens": 0})
    log.answer(model="house-model", usage={"input_tokens": 50_000_000, "output_tokens": 0})
    path = log.write()

    unpriced = run("report", path, "--alert", "total>$6")
    misspelt = run("report", path, "--alert", "session:9999>$1")
    elsewhere = run("report", path, "--since", "2027-01-01", "--alert", "session:s1>$1")

    assert (unpriced.code, misspelt.code, elsewhere.code) == (1, 1, 0)
    assert "alert: total: cannot be judged: $2.00*, and 50,000,000 tokens have no price\n" in unpriced.err
    assert "matches no session" in misspelt.err
    assert run("report", path, "--alert", "model:claude-sonnet-5>$6").code == 0
