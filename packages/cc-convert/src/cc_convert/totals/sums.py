"""Arithmetic with sums by model. It knows neither files nor sessions."""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from ..log_files.model_names import canonical_model
from ..log_files.rows import NO_COUNTS, Counts, Row, add_counts, counts_of

Totals: TypeAlias = dict[str, tuple[Counts, float]]
"""Counts and US dollars, by model."""
NOTHING: tuple[Counts, float] = (NO_COUNTS, 0.0)
Sums: TypeAlias = dict[str, tuple[int, ...]]
"""Input, output, cache read, cache write and web searches by model, as in all versions. No model has only zeros."""

# Largest number of steps in a search for addends. A thousand steps take a millisecond.
_MOST_STEPS = 20_000
FEW_STEPS = 2_000
"""Number of steps in a search that all sessions may need, or none."""


def add_to(totals: Totals, model: str, counts: Counts, cost: float) -> None:
    """Add a model's counts and cost to totals."""
    earlier, spent = totals.get(model, NOTHING)
    totals[model] = (add_counts(earlier, counts), spent + cost)


def add_all(parts: Iterable[Totals]) -> Totals:
    """Return the sum of totals."""
    totals: Totals = {}
    for part in parts:
        for model, (counts, cost) in part.items():
            add_to(totals, model, counts, cost)
    return totals


def size_of(totals: Totals) -> int:
    """Return all tokens for all models."""
    return sum(number for counts, _ in totals.values() for number in counts[:5])


def billed_model(row: Row) -> str:
    """Return the model under which the CLI totals count a request."""
    return canonical_model(row.requested or row.model)


def count_rows(rows: Iterable[Row]) -> dict[str, Counts]:
    """Return the rows' counts, by model."""
    counted: dict[str, Counts] = {}
    for row in rows:
        model = billed_model(row)
        earlier = counted.get(model)
        counted[model] = counts_of(row) if earlier is None else add_counts(earlier, counts_of(row))
    return counted


def sums(totals: Totals) -> Sums:
    """Return the sums in totals."""
    return without_zeros({model: counts for model, (counts, _) in totals.items()})


def sums_of(rows: Iterable[Row]) -> Sums:
    """Return the sums over rows."""
    return without_zeros(count_rows(rows))


def without_zeros(counts: Mapping[str, Counts]) -> Sums:
    """Return the sums in counts by model."""
    by_model = {
        model: (uncached, output, read, five_minutes + hour, searches)
        for model, (uncached, output, read, five_minutes, hour, _, searches) in counts.items()
    }
    return {model: numbers for model, numbers in by_model.items() if any(numbers)}


def find_run(rows: Iterable[Row], total: Sums) -> list[Row]:
    """Return rows that follow each other in time and add up to a total; none if there are no such rows."""
    ordered = sorted(rows, key=lambda row: row.time or 0.0)
    tokens = sum(sum(counts[:4]) for counts in total.values())
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
    single = [count_rows([row]) for row in rows]
    # Largest sums that the rows up to each row can explain.
    most: list[Sums] = [{}]
    counted: dict[str, Counts] = {}
    for by_model in single:
        for model, counts in by_model.items():
            counted[model] = add_counts(counted.get(model, NO_COUNTS), counts)
        most.append(without_zeros(counted))
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
            if (rest := difference(remaining, without_zeros(single[at - 1]))) is not None:
                waiting.append((at - 1, rest, (*chosen, at - 1)))
    return None


def difference(total: Sums, part: Sums) -> Sums | None:
    """Return a total minus a part; `None` if a count in the part is larger."""
    if not part:
        return total
    if not part.keys() <= total.keys():
        return None
    remaining = dict(total)
    for model, counts in part.items():
        numbers = tuple(total_count - taken for total_count, taken in zip(total[model], counts, strict=True))
        if min(numbers) < 0:
            return None
        remaining[model] = numbers
        if not any(numbers):
            del remaining[model]
    return remaining
