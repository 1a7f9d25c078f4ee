"""Arithmetic with sums by model. It knows neither files nor sessions."""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from ..log_files.model_names import canonical_model
from ..log_files.rows import NO_COUNTS, Counts, Row, add_counts, counts_of

__all__ = [
    "NOTHING", "Sums", "Totals", "add_to", "count_rows", "difference",
    "size_of", "sums", "sums_of", "without_zeros",
]  # fmt: skip

Totals: TypeAlias = dict[str, tuple[Counts, float]]
"""Counts and US dollars, by model."""
NOTHING: tuple[Counts, float] = (NO_COUNTS, 0.0)
Sums: TypeAlias = dict[str, tuple[int, ...]]
"""Input, output, cache read, cache write and web searches by model, as in all versions. No model has only zeros."""


def add_to(totals: Totals, model: str, counts: Counts, cost: float) -> None:
    """Add a model's counts and cost to totals."""
    earlier, spent = totals.get(model, NOTHING)
    totals[model] = (add_counts(earlier, counts), spent + cost)


def size_of(totals: Totals) -> int:
    """Return all tokens for all models."""
    return sum(number for counts, _ in totals.values() for number in counts[:5])


def count_rows(rows: Iterable[Row]) -> dict[str, Counts]:
    """Return the rows' counts, by model."""
    counted: dict[str, Counts] = {}
    for row in rows:
        model = canonical_model(row.model)
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
        model: (fresh, output, read, short + hour, searches)
        for model, (fresh, output, read, short, hour, _, searches) in counts.items()
    }
    return {model: numbers for model, numbers in by_model.items() if any(numbers)}


def difference(total: Sums, part: Sums) -> Sums | None:
    """Return a total minus a part; `None` if a count in the part is larger."""
    if not part:
        return total
    if not part.keys() <= total.keys():
        return None
    remaining = dict(total)
    for model, counts in part.items():
        numbers = tuple(whole - taken for whole, taken in zip(total[model], counts, strict=True))
        if min(numbers) < 0:
            return None
        remaining[model] = numbers
        if not any(numbers):
            del remaining[model]
    return remaining
