"""Arithmetic with sums by model. It knows neither files nor sessions."""

from collections.abc import Iterable
from typing import NewType, TypeAlias

from ..log_files.amounts import NOTHING, Amounts
from ..log_files.model_names import canonical_model
from ..log_files.rows import Row

Totals: TypeAlias = dict[str, Amounts]
"""Amounts by model."""
Sums = NewType("Sums", Totals)
"""Comparable amounts by model. No model has only zeros."""

# Largest number of steps in a search for addends. A thousand steps take a millisecond.
_MOST_STEPS = 20_000
FEW_STEPS = 2_000
"""Number of steps in a search that all sessions may need, or none."""


def add_to(totals: Totals, model: str, amounts: Amounts) -> None:
    """Add a model's amounts to totals."""
    totals[model] = totals.get(model, NOTHING) + amounts


def add_all(parts: Iterable[Totals]) -> Totals:
    """Return the sum of totals."""
    totals: Totals = {}
    for part in parts:
        for model, amounts in part.items():
            add_to(totals, model, amounts)
    return totals


def size_of(totals: Totals) -> int:
    """Return all tokens for all models."""
    return sum(amounts.tokens for amounts in totals.values())


def billed_model(row: Row) -> str:
    """Return the model under which the CLI totals count a request."""
    return canonical_model(row.requested or row.model)


def count_rows(rows: Iterable[Row]) -> Totals:
    """Return the rows' amounts, by model."""
    counted: Totals = {}
    for row in rows:
        add_to(counted, billed_model(row), row.amounts)
    return counted


def sums(totals: Totals) -> Sums:
    """Return the sums in totals."""
    return Sums({model: numbers for model, amounts in totals.items() if any(numbers := amounts.comparable)})


def sums_of(rows: Iterable[Row]) -> Sums:
    """Return the sums over rows."""
    return sums(count_rows(rows))


def find_run(rows: Iterable[Row], total: Sums) -> list[Row]:
    """Return rows that follow each other in time and add up to a total; none if there are no such rows."""
    ordered = sorted(rows, key=lambda row: row.time or 0.0)
    tokens = size_of(total)
    start = size = 0
    for stop, row in enumerate(ordered, start=1):
        size += row.tokens
        while size > tokens and start < stop:
            size -= ordered[start].tokens
            start += 1
        if size == tokens and total and sums_of(run := ordered[start:stop]) == total:
            return run
    return []


def find_addends(rows: list[Row], total: Sums, most_steps: int = _MOST_STEPS) -> list[Row] | None:
    """Return rows that add up to a total, if there are any; among several sets, the latest set."""
    single = [sums_of([row]) for row in rows]
    # Largest sums that the rows up to each row can explain.
    most = [Sums({})]
    for part in single:
        most.append(Sums(add_all([most[-1], part])))
    # Each entry: position to continue from, rest to explain, chosen rows.
    waiting: list[tuple[int, Sums, tuple[int, ...]]] = [(len(rows), total, ())]
    for _ in range(most_steps):
        if not waiting:
            return None
        at, remaining, chosen = waiting.pop()
        if not remaining:
            return [rows[index] for index in reversed(chosen)]
        if at > 0 and difference(most[at], remaining) is not None:
            waiting.append((at - 1, remaining, chosen))
            if (rest := difference(remaining, single[at - 1])) is not None:
                waiting.append((at - 1, rest, (*chosen, at - 1)))
    return None


def difference(total: Sums, part: Sums) -> Sums | None:
    """Return a total minus a part; `None` if a count in the part is larger."""
    if not part:
        return total
    if not part.keys() <= total.keys():
        return None
    remaining = dict(total)
    for model, amounts in part.items():
        rest = total[model] - amounts
        if min(rest) < 0:
            return None
        remaining[model] = rest
        if not any(rest):
            del remaining[model]
    return Sums(remaining)
