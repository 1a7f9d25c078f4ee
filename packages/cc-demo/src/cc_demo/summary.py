"""The end of the demo: the time of each request, and the gain of a warm process."""

from collections.abc import Sequence
from statistics import median

from pydantic_ai.usage import RunUsage
from rich.table import Table

from .screen import Screen, milliseconds
from .timing import Timing

__all__ = ["show_timings", "usage_line"]


def usage_line(usage: RunUsage, *, is_offline: bool) -> str:
    """Tokens and cost of a run, in words."""
    requests, calls = _count(usage.requests, "request"), _count(usage.tool_calls, "successful tool call")
    if usage.cost is None:
        cost = "not priced"
    else:
        cost = f"${usage.cost:.4f}" + (", had it been Claude" if is_offline else " at API prices")
    return f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out; {requests}, {calls}; cost: {cost}"


def show_timings(screen: Screen, timings: Sequence[Timing], start_seconds: Sequence[float], *, note: str) -> None:
    """Show a table of all requests, and its meaning.

    Args:
        screen: Where.
        timings: The requests, the first one first.
        start_seconds: How long each start of a process took.
        note: What else is to be known about the times; a sentence, or nothing.
    """
    screen.heading("Requests to the model")
    screen.console.print(_table(timings))
    starts = " and ".join(milliseconds(seconds) for seconds in start_seconds)
    screen.remark(f"Claude Code was started {_times(len(start_seconds))}, in {starts}.")
    if warm := [timing.wait for timing in timings if not timing.has_started]:
        screen.remark(_comparison(timings[0].wait, warm), "bold green")
    screen.remark(f"Waited: until the answer began. Wrote: from there to its end, at the model's pace. {note}", "dim")


def _comparison(first: float, warm: Sequence[float]) -> str:
    middle, best = median(warm), min(warm)
    return (
        f"A warm request waited {milliseconds(middle)} (median; the fastest {milliseconds(best)}), against "
        f"{milliseconds(first)} for the first one, which started the process: {_ratio(first / middle)}× faster "
        f"(the fastest {_ratio(first / best)}×)."
    )


def _ratio(value: float) -> str:
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def _table(timings: Sequence[Timing]) -> Table:
    table = Table(border_style="dim", header_style="bold")
    table.add_column("#", justify="right")
    table.add_column("process")
    for name in ("waited", "wrote", "in all"):
        table.add_column(name, justify="right", no_wrap=True)
    for number, timing in enumerate(timings, start=1):
        times = (milliseconds(seconds) for seconds in (timing.wait, timing.writing, timing.total))
        table.add_row(str(number), "started" if timing.has_started else "warm", *times)
    return table


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" + ("" if number == 1 else "s")
