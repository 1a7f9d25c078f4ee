"""Statistics and figures of the benchmarks."""

from __future__ import annotations

import pytest

from bench.harness.figures import Bound, Effort, Figure, Group
from bench.harness.measure import alternated, median, p90, quantile, ratios_of_neighbours, rotated, spread


def test_p90_is_the_value_that_nine_of_ten_do_not_exceed() -> None:
    assert p90([float(number) for number in range(10, 0, -1)]) == 9
    assert p90([5.0]) == 5
    assert quantile([1.0, 2.0, 3.0], 0) == 1
    assert quantile([1.0, 2.0, 3.0], 1) == 3
    assert quantile([float(number) for number in range(1, 101)], 0.99) == 99


def test_an_empty_sequence_has_no_statistics() -> None:
    for statistic in (median, p90):
        with pytest.raises(ValueError, match="nothing was measured"):
            statistic([])
    with pytest.raises(ValueError, match="nothing was measured"):
        ratios_of_neighbours([], [1.0])
    with pytest.raises(ValueError, match="not a share"):
        quantile([1.0], 1.1)


def test_ratios_are_taken_between_neighbours() -> None:
    assert ratios_of_neighbours([2.0, 40.0, 6.0], [1.0, 20.0, 2.0]) == [2, 2, 3]


def test_ratios_use_values_at_even_distances_of_the_longer_sequence() -> None:
    assert spread([0, 1, 2, 3, 4, 5], 3) == [0, 2, 4]
    assert ratios_of_neighbours([10.0, 30.0], [1.0, 9.0, 3.0, 9.0]) == [10, 10]


def test_a_floor_of_zero_is_rejected() -> None:
    with pytest.raises(ValueError, match="contains a zero"):
        ratios_of_neighbours([1.0], [0.0])


def test_each_round_begins_with_another_contender() -> None:
    assert [rotated("abc", by)[0] for by in range(-1, 4)] == ["c", "a", "b", "c", "a"]
    assert sorted(rotated("abc", 5)) == ["a", "b", "c"]
    assert rotated("", 1) == []


async def test_warm_up_rounds_do_not_count() -> None:
    done: list[str] = []

    async def first() -> None:
        done.append("first")

    async def second() -> None:
        done.append("second")

    found = await alternated({"first": first, "second": second}, times=3, warm_up=2)

    assert {name: len(times) for name, times in found.items()} == {"first": 3, "second": 3}
    assert (done.count("first"), done.count("second")) == (5, 5)
    assert all(done[at] != done[at + 1] for at in range(0, len(done), 2))


def test_a_group_compares_all_with_its_floor_but_not_the_floor_with_itself() -> None:
    floor, other = Group("suite", "Title").figures({"floor": [1.0, 2.0, 3.0], "other": [2.0, 4.0, 9.0]}, "floor")

    assert (floor.ratio, other.ratio) == (None, 2)
    assert other == Figure("suite", "Title", "other", "ms", 3, 4.0, 9.0, 2.0)


@pytest.mark.parametrize(
    ("bound", "kept"),
    [
        (None, None),
        (Bound("median", 4.0), True),
        (Bound("median", 3.9), False),
        (Bound("median", 4.0, least=True), True),
        (Bound("median", 4.1, least=True), False),
        (Bound("ratio", 2.0), True),
        (Bound("ratio", 1.9), False),
    ],
)
def test_a_bound_is_met_up_to_its_limit(bound: Bound | None, kept: bool | None) -> None:
    assert Figure("s", "g", "n", "ms", 1, median=4.0, p90=4.0, ratio=2.0, bound=bound).kept is kept


def test_a_bound_on_a_ratio_is_missed_without_a_ratio() -> None:
    assert Figure("s", "g", "n", "ms", 1, 1.0, 1.0, bound=Bound("ratio", 2.0)).kept is False


def test_a_quick_run_repeats_less() -> None:
    assert (Effort().times(200, 3), Effort(quick=True).times(200, 3)) == (200, 3)
