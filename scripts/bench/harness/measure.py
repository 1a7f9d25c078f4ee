"""Statistics of repeated measurements, and the clock. Pure, except for `milliseconds`."""

import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")


def median(values: Sequence[float]) -> float:
    """Return the median of some values.

    Raises:
        ValueError: There are no values.
    """
    if not values:
        raise ValueError("nothing was measured")
    return statistics.median(values)


def quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of all values does not exceed.

    Raises:
        ValueError: There are no values, or the share is not between 0 and 1.
    """
    if not values:
        raise ValueError("nothing was measured")
    if not 0 <= share <= 1:
        raise ValueError(f"not a share between 0 and 1: {share}")
    rank = -int(-share * len(values) // 1)  # ceiling
    return sorted(values)[max(0, rank - 1)]


def p90(values: Sequence[float]) -> float:
    """Return the 90th percentile."""
    return quantile(values, 0.9)


def ratios_of_neighbours(values: Sequence[float], floor: Sequence[float]) -> list[float]:
    """Return the ratios between values that were measured one after the other.

    Other work of the computer affected both alike; separate medians do not have this property. Of the longer sequence,
    values at even distances are used.

    Raises:
        ValueError: One of them is empty, or the floor has a zero.
    """
    if not values or not floor:
        raise ValueError("nothing was measured")
    if 0 in floor:
        raise ValueError("the floor contains a zero")
    count = min(len(values), len(floor))
    return [mine / least for mine, least in zip(spread(values, count), spread(floor, count), strict=True)]


def spread(values: Sequence[T], count: int) -> list[T]:
    """Return `count` values at even distances."""
    return [values[number * len(values) // count] for number in range(count)]


def rotated(names: Sequence[T], by: int) -> list[T]:
    """Return the names in another order for each round, so that no contender always follows the same one."""
    start = by % len(names) if names else 0
    return [*names[start:], *names[:start]]


async def milliseconds(action: Callable[[], Awaitable[object]]) -> float:
    """Return the milliseconds of a call."""
    begun = time.perf_counter()
    await action()
    return (time.perf_counter() - begun) * 1_000


async def alternated(
    actions: Mapping[str, Callable[[], Awaitable[object]]], times: int, warm_up: int
) -> dict[str, list[float]]:
    """Return the milliseconds of each action over all rounds; each round runs every action once."""
    found: dict[str, list[float]] = {name: [] for name in actions}
    for number in range(-warm_up, times):
        for name in rotated(list(actions), number):
            took = await milliseconds(actions[name])
            if number >= 0:
                found[name].append(took)
    return found
