"""`cc-convert reconcile`: compare requests with the CLI totals."""

import sys
from argparse import Namespace
from typing import Any

from ..reconcile import Comparison, reconcile
from ..report.lines import spell_cost
from . import FINDINGS, OK
from .inputs import chosen_prices, load_logs, mention, overview
from .output import is_too_wide, say, shortened, without_empty, write_records, write_table

_SHORT_ID = 9


def run(options: Namespace) -> int:
    """Compare; return 1 if a session differs, or may be counted twice."""
    logs = load_logs(options)
    compared = reconcile(logs, chosen_prices(options))
    shown = [comparison for comparison in compared if options.all or not comparison.agrees or any(comparison.unlogged)]
    if options.format in ("json", "csv"):
        write_records(sys.stdout, [_record(comparison) for comparison in compared], options.format)
    elif shown:
        table = _table(shown)
        if options.format == "table" and is_too_wide(sys.stdout, table):
            table = [[shortened(name, _SHORT_ID), *cells] for name, *cells in table]
        write_table(sys.stdout, table, options.format, drops=("In no total", "Unlogged", "Requests"))
    differing = [comparison for comparison in compared if not comparison.agrees]
    rows = sum(row.kind != "error" for row in logs.rows)
    without = {row.session for row in logs.rows} - set(logs.totals)
    say(f"{rows:,} rows; {len(compared)} sessions with a total of the CLI's own, {len(differing)} of them differ")
    doubtful = [comparison for comparison in compared if comparison.doubtful]
    for comparison in doubtful:
        say(
            f"{comparison.session}: {comparison.doubtful:,} tokens may be counted twice: "
            "processes were killed or ran at once, or the clock was set back"
        )
    if without:
        say(f"{len(without)} sessions have no total to compare with")
    code = mention(overview(logs, ())) if logs.lost else OK
    return FINDINGS if differing or doubtful else code


def _record(comparison: Comparison) -> dict[str, Any]:
    record: dict[str, Any] = {"session": comparison.session, "project": comparison.project, "agrees": comparison.agrees}
    record["doubtful"] = comparison.doubtful
    names = ("requests", "unlogged", "stated", "difference", "outside")
    for kind, *numbers in comparison.by_kind():
        record |= {f"{kind}_{name}": number for name, number in zip(names, numbers, strict=True)}
    return record | {
        "cost": round(comparison.logged.cost, 9),
        "cost_stated": round(comparison.stated.cost, 9),
        "cost_difference": round(comparison.difference.cost, 9),
    }


def _table(compared: list[Comparison]) -> list[list[str]]:
    table = [["Session", "Kind", "Requests", "Unlogged", "CLI", "Difference", "In no total"]]
    for comparison in compared:
        name = comparison.session
        for kind, requests, unlogged, stated, difference, outside in comparison.by_kind():
            if requests or stated or difference or outside:
                cells = [f"{number:,}" for number in (requests, unlogged, stated)]
                spelled = f"{difference:+,}" if difference else "0"
                table.append([name, kind, *cells, spelled, f"{outside:,}" if outside else ""])
                name = ""
        off = comparison.difference.cost
        spelled = "0" if abs(off) < 0.00005 else f"{off:+,.4f}"
        cells = ["cost", spell_cost(comparison.logged.cost), "", spell_cost(comparison.stated.cost), spelled, ""]
        table.append(["", *cells])
    return without_empty(table, "In no total")
