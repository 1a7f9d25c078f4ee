"""Output: a progress line, tables at the end, JSON. Pure: from figures to text."""

import json
from collections.abc import Iterable, Sequence

from .faults import Round
from .soak import Settings
from .totals import Totals


def progress(totals: Totals, plan: Round | None) -> str:
    place = "warm-up" if plan is None else f"round {plan.number} ({', '.join(plan.faults) or 'calm'})"
    faults = " ".join(f"{name}:{count}" for name, count in sorted(totals.done.items())) or "none yet"
    work = f"{totals.runs} runs, {_rate(totals):.1f}/s  violated: {totals.broken_count}"
    largest = f"largest: python {totals.most_python_mb:.0f} MB, CLI {totals.most_cli_mb:.0f} MB"
    return f"{totals.seconds:5.0f} s  {place}  {work}  {largest}  faults: {faults}"


def summary(settings: Settings, totals: Totals, disk: str) -> str:
    """Return all figures, and the violated invariants with a command to reproduce the first violation."""
    kinds = [
        (name, kind.cases, kind.runs, kind.right, f"{kind.slowest:.1f} s")
        for name, kind in sorted(totals.kinds.items())
    ]
    faults = [(name, totals.done[name], totals.caused[name]) for name in settings.faults]
    rests = [f"{megabytes:.0f}" for megabytes in totals.resting_mb]
    lines = [
        f"{totals.runs} runs ({_rate(totals):.1f}/s) in {totals.cases} cases and {totals.rounds} rounds",
        f"{totals.seconds:.0f} s, {settings.at_once} at once on {settings.pool} processes; seed {settings.seed}",
        f"{totals.requests} requests to the API; {totals.starts} processes started; full disk by: {disk}",
        f"longest wait of this process for processor time: {totals.longest_wait:.1f} s",
        "",
        *_table(("cases", "made", "runs", "right", "slowest"), kinds),
        "",
        *_table(("faults", "done", "errors by it"), faults),
        "",
        "ended: " + ", ".join(f"{name} {count}" for name, count in totals.outcomes.most_common()),
        f"memory of this process at {len(rests)} rests: {', then '.join([*rests[:1], *rests[-1:]])} MB",
        f"at most {totals.most_python_mb:.0f} MB; largest CLI process {totals.most_cli_mb:.0f} MB",
        f"tasks left by pydantic-ai after cancelled runs: {totals.orphans}",
        f"violated invariants: {totals.broken_count}",
        *(f"  {line}" for line in totals.broken),
    ]
    if totals.broken:
        number = max(0, int(totals.broken[0].removeprefix("round ").partition(":")[0]))
        lines.append(
            f"To reproduce: uv run scripts/soak --seed {settings.seed} --round {number} "
            f"--minutes {settings.minutes:g} --at-once {settings.at_once} --pool {settings.pool} "
            f"--only {' '.join(settings.faults)}"
        )
    return "\n".join(lines)


def as_json(settings: Settings, totals: Totals, disk: str) -> str:
    faults = {name: {"done": totals.done[name], "errors": totals.caused[name]} for name in settings.faults}
    kinds = {name: vars(kind) for name, kind in totals.kinds.items()}
    figures = {**vars(settings), **vars(totals), "kinds": kinds, "faults": faults, "full_disk_by": disk}
    return json.dumps(figures, indent=2) + "\n"


def _rate(totals: Totals) -> float:
    return totals.runs / totals.seconds if totals.seconds else 0.0


def _table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> list[str]:
    return ["".join(f"{cell!s:<14}" for cell in row).rstrip() for row in (head, *rows)]
