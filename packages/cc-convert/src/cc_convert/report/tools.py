"""Calls, durations and failures by tool."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..log_files.events import Event
from ..log_files.rows import Row


@dataclass(slots=True)
class ToolLine:
    """Figures for a tool."""

    key: str
    calls: int = 0
    """Number of calls by the model."""
    failures: int = 0
    """Results that were errors."""
    unanswered: int = 0
    """Calls without a result in the log."""
    seconds: list[float] = field(default_factory=list[float])
    """Each call's duration, from the call time to the result's."""
    result_characters: int = 0
    """Results' total length."""
    output: int = 0
    """Output tokens of the answers that called it, divided among all calls in an answer."""
    cost: float = 0.0
    """Cost of these answers, divided likewise."""
    unpriced: int = 0
    """Tokens of these answers, not divided, whose model has no price."""

    def quantile(self, part: float) -> float | None:
        """Return the time that this share of calls did not exceed."""
        if not self.seconds:
            return None
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def tool_lines(rows: Iterable[Row], events: Iterable[Event]) -> list[ToolLine]:
    """Return a line for each tool, the most called first, from priced rows, and events in their logs.

    Calls of answers that are not among the rows do not count.
    """
    lines: dict[str, ToolLine] = {}
    answers: set[str] = {""}
    for row in rows:
        answers.add(row.message_id)
        for name in row.tools:
            line = lines.setdefault(name, ToolLine(name))
            line.calls += 1
            line.output += row.output // len(row.tools)
            line.cost += (row.cost or 0.0) / len(row.tools)
            line.unpriced += row.tokens if row.cost is None else 0
    called: dict[str, Event] = {}
    answered: set[str] = set()
    for event in events:
        if event.kind == "call" and event.name in lines and event.message_id in answers:
            called.setdefault(event.identity, event)
        elif event.kind == "result" and (call := called.get(event.identity)) and event.identity not in answered:
            answered.add(event.identity)
            _answer(lines[call.name], call, event)
    for identity, call in called.items():
        lines[call.name].unanswered += identity not in answered
    return sorted(lines.values(), key=lambda line: (-line.calls, line.key))


def _answer(line: ToolLine, call: Event, result: Event) -> None:
    line.failures += result.failed
    line.result_characters += len(result.text)
    if call.time is not None and result.time is not None and result.time >= call.time:
        line.seconds.append(round(result.time - call.time, 3))
