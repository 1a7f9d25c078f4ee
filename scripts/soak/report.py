"""Output: a progress line, a table at the end, JSON. Pure: from figures to text."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from .plan import Round
from .soak import Settings
from .totals import Totals
from .verdict import RIGHT


def progress(totals: Totals, plan: Round | None) -> str:
    """Return one line of progress."""
    where = "warm-up" if plan is None else f"round {plan.number} ({', '.join(plan.faults) or 'calm'})"
    done = " ".join(f"{name}:{count}" for name, count in sorted(totals.done.items())) or "none yet"
    memory = totals.memory
    return (
        f"{totals.seconds:5.0f} s  {where}  {totals.runs} runs, {rate(totals):.1f}/s  violated: {totals.broken_count}  "
        f"largest: python {memory.most_python:.0f} MB, CLI {memory.most_cli:.0f} MB  faults: {done}"
    )


def rate(totals: Totals) -> float:
    """Return the runs of agents per second."""
    return totals.runs / totals.seconds if totals.seconds else 0.0


def summary(settings: Settings, totals: Totals, way: str) -> str:
    """Return all figures, and the violated invariants."""
    kinds = [
        (name, str(kind.cases), str(kind.runs), str(kind.right), f"{kind.slowest:.1f} s")
        for name, kind in sorted(totals.kinds.items())
    ]
    faults = [(name, str(totals.done[name]), str(totals.caused[name])) for name in settings.faults]
    rests = totals.memory.rests
    made = (
        f"{totals.runs} runs ({rate(totals):.1f}/s) in {totals.cases} cases, {settings.at_once} at once "
        f"on {settings.pool} processes, in {totals.seconds:.0f} s and {totals.rounds} rounds; seed {settings.seed}"
    )
    memory = (
        f"memory of this process at {len(rests)} rests: {_first_and_last(rests)}; at most "
        f"{totals.memory.most_python:.0f} MB; largest CLI process {totals.memory.most_cli:.0f} MB"
    )
    lines = [
        made,
        f"{totals.requests} requests to the API; {totals.starts} processes started; full disk by: {way}",
        f"longest wait of this process for processor time: {totals.longest_wait:.1f} s",
        "",
        *table(("cases", "made", "runs", "right", "slowest"), kinds),
        "",
        *table(("faults", "done", "errors by it"), faults),
        "",
        "ended: " + ", ".join(f"{name} {count}" for name, count in totals.outcomes.most_common()),
        memory,
        f"tasks left by pydantic-ai after cancelled runs: {totals.orphans}",
        f"violated invariants: {totals.broken_count}",
        *(f"  {line}" for line in totals.broken),
    ]
    if totals.broken:
        lines.append(f"To reproduce: {again(settings, totals)}")
    return "\n".join(lines)


def again(settings: Settings, totals: Totals) -> str:
    """Return the command that repeats the rounds from the first violation on."""
    number = max(0, int(totals.broken[0].removeprefix("round ").partition(":")[0])) if totals.broken else 0
    return (
        f"uv run scripts/soak --seed {settings.seed} --round {number} --minutes {settings.minutes:g} "
        f"--at-once {settings.at_once} --pool {settings.pool} --only {' '.join(settings.faults)}"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return rows as lines, the first column aligned left and the others right."""
    cells = [head, *rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


def as_json(settings: Settings, totals: Totals, way: str) -> str:
    """Return all figures as JSON."""
    figures: dict[str, Any] = {
        "seed": settings.seed,
        "at_once": settings.at_once,
        "pool": settings.pool,
        "full_disk_by": way,
        "seconds": round(totals.seconds, 1),
        "rounds": totals.rounds,
        "cases": totals.cases,
        "runs": totals.runs,
        "right": totals.outcomes[RIGHT],
        "requests": totals.requests,
        "processes_started": totals.starts,
        "kinds": {name: vars(kind) for name, kind in totals.kinds.items()},
        "outcomes": dict(totals.outcomes),
        "faults": {name: {"done": totals.done[name], "errors": totals.caused[name]} for name in settings.faults},
        "longest_wait_seconds": round(totals.longest_wait, 1),
        "orphans": totals.orphans,
        "memory_mb": vars(totals.memory),
        "broken_count": totals.broken_count,
        "broken": totals.broken,
    }
    return json.dumps(figures, indent=2) + "\n"


def _first_and_last(rests: Sequence[float]) -> str:
    return f"{rests[0]:.0f} MB, then {rests[-1]:.0f} MB" if rests else "none"
