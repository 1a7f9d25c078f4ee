"""Bounds of the benchmarks' figures."""

import pytest

from bench.harness import (
    Bound,
    Group,
)


@pytest.mark.parametrize(
    ("bound", "is_met"),
    [
        (None, None),
        (Bound(4.0), True),
        (Bound(3.9), False),
        (Bound(4.0, least=True), True),
        (Bound(4.1, least=True), False),
        (Bound(2.0, of="ratio"), True),
        (Bound(1.9, of="ratio"), False),
    ],
)
def test_a_bound_is_met_up_to_its_limit(bound: Bound | None, is_met: bool | None) -> None:
    values = {"floor": [1.0, 2.0, 3.0], "ours": [2.0, 4.0, 9.0]}
    floor, ours = Group("group").figures(values, "floor", {"ours": bound} if bound else None)
    assert (floor.ratio, floor.is_met, ours.ratio, ours.median, ours.is_met) == (None, None, 2, 4, is_met)
