"""Figures as one static page: no network, no script, light and dark, readable on a phone."""

from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby

from .chart import bar_chart
from .figures import Figure, Machine
from .report_text import NOTE

_STYLE = """
:root{color-scheme:light dark;--paper:#fbfaf7;--card:#fff;--ink:#23211d;--dim:#6a655c;--line:#e2ded5;
--ours:#b4532f;--other:#8d99a8;--missed:#c22f2f}
@media(prefers-color-scheme:dark){:root{--paper:#191816;--card:#22211e;--ink:#efece5;--dim:#a8a297;--line:#3a3833;
--ours:#e79a7c;--other:#77818d;--missed:#f07070}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:940px;padding:16px;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
h1{font-size:22px;margin:0 0 4px}h2{font-size:17px;margin:26px 0 4px}h3{font-size:14px;margin:0 0 8px}
.dim{color:var(--dim)}p.dim{font-size:13px;margin:6px 0 0}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:12px 14px;margin:10px 0}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(130px,1fr));gap:8px;margin:12px 0;padding:0;
list-style:none}
.facts li{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:8px 12px;color:var(--dim);
font-size:13px}
.facts b{display:block;color:var(--ink);font-size:17px}
.row{display:grid;grid-template-columns:minmax(0,15em) minmax(0,1fr) 11em;gap:10px;align-items:center;padding:2px 0;
font-size:13.5px}
.value{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.bound{display:block;font-size:12px;color:var(--dim)}
svg{display:block}
.ours rect{fill:var(--ours)}.other rect{fill:var(--other)}.missed rect{fill:var(--missed)}
line{stroke:var(--dim);stroke-width:2}
.bad,.missed+.value{color:var(--missed)}
@media(max-width:640px){.row{grid-template-columns:minmax(0,1fr) auto;gap:0 8px;padding:5px 0}
.row svg{grid-column:1/-1;grid-row:2}}
"""


def as_html(
    figures: Sequence[Figure],
    machine: Machine,
    titles: dict[str, str],
    notes: Iterable[str] = (),
    *,
    judged: bool = True,
) -> str:
    """Return the page; `titles` has a line about each suite."""
    sections = "".join(
        _suite(titles.get(name, name), list(members), judged=judged)
        for name, members in groupby(figures, key=lambda figure: figure.suite)
    )
    said = "".join(f'<p class="dim">{escape(note)}</p>' for note in (NOTE, *notes))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1"><title>Benchmarks</title>'
        f"<style>{_STYLE}</style></head><body><h1>Benchmarks</h1>{_verdict(figures, judged=judged)}{_facts(machine)}"
        f"{said}{_LEGEND}{sections}</body></html>\n"
    )


_LEGEND = (
    '<p class="dim">A bar is a median, and the thin line at its end reaches to the 90th percentile. &times; is the '
    "median ratio to the chart's floor, between neighbours in time; the floor is the bar that has a number alone.</p>"
)


def _verdict(figures: Sequence[Figure], *, judged: bool) -> str:
    if not judged:
        return "<p>A quick run: too few repetitions for a verdict.</p>"
    bounded = [figure for figure in figures if figure.bound is not None]
    missed = [figure for figure in bounded if not figure.kept]
    if not missed:
        return f"<p>All {len(bounded)} bounds are kept.</p>"
    names = "; ".join(f"{figure.group}: {figure.name}" for figure in missed)
    return f'<p class="bad">{len(missed)} of {len(bounded)} bounds are missed: {escape(names)}.</p>'


def _facts(machine: Machine) -> str:
    facts = {
        "date": machine.date,
        "CPUs": str(machine.cpus),
        "load at the start": f"{machine.load:.1f}",
        "Python": machine.python,
        "Claude Code": machine.cli,
    }
    return (
        f'<ul class="facts">{"".join(f"<li><b>{escape(value)}</b>{name}</li>" for name, value in facts.items())}</ul>'
    )


def _suite(title: str, figures: Sequence[Figure], *, judged: bool) -> str:
    charts = "".join(
        f'<div class="card"><h3>{escape(group)}</h3>{bar_chart(list(members), judged=judged)}</div>'
        for group, members in groupby(figures, key=lambda figure: figure.group)
    )
    return f"<section><h2>{escape(title)}</h2>{charts}</section>"
