"""Bars, as SVG that takes the width it gets: beside each a label and a number that stay readable on a phone."""

import math
from collections.abc import Sequence
from html import escape

from .figures import Figure
from .report_text import number, quantity

# What stands out in a chart: names that begin so.
_OURS = ("ClaudeCodeModel", "cc-", "Session")
# From this ratio on the smaller bars could no longer be told apart on a linear scale.
_LOG_FROM = 15.0
# What the smallest bar of a log scale gets, in percent, so that it is seen.
_LEAST = 4.0


class Scale:
    """From values to percents of the width; logarithmic if the values are far from each other."""

    def __init__(self, values: Sequence[float]) -> None:
        positive = [value for value in values if value > 0]
        self._most, self._least = max(positive, default=1.0), min(positive, default=1.0)
        self.is_log = self._most / self._least >= _LOG_FROM

    def percent(self, value: float) -> float:
        """How long a bar is."""
        if value <= 0:
            return 0.0
        if not self.is_log:
            return min(100.0, 100.0 * value / self._most)
        span = math.log(self._most / self._least)
        return min(100.0, _LEAST + (100.0 - _LEAST) * math.log(max(value, self._least) / self._least) / span)


def bar_chart(figures: Sequence[Figure], *, judged: bool = True) -> str:
    """One chart of figures that have the same unit."""
    scale = Scale([value for figure in figures for value in (figure.median, figure.p90)])
    rows = "".join(_row(figure, scale, judged=judged) for figure in figures)
    note = '<p class="dim">Logarithmic scale.</p>' if scale.is_log else ""
    return f'<div class="chart">{rows}</div>{note}'


def _row(figure: Figure, scale: Scale, *, judged: bool) -> str:
    missed = judged and figure.kept is False
    kind = "missed" if missed else "ours" if figure.name.startswith(_OURS) else "other"
    length, end = scale.percent(figure.median), scale.percent(figure.p90)
    spoken = escape(f"{figure.name}: {quantity(figure.median, figure.unit)}", quote=True)
    bar = (
        f'<svg class="{kind}" role="img" aria-label="{spoken}" height="18" width="100%">'
        f'<rect x="0" y="2" height="14" rx="2" width="{length:.2f}%"/>'
        f'<line x1="{min(length, end):.2f}%" x2="{max(length, end):.2f}%" y1="9" y2="9"/></svg>'
    )
    ratio = f' <span class="dim">&times;{number(figure.ratio)}</span>' if figure.ratio is not None else ""
    bound = f'<span class="bound">{escape(_bound_text(figure, judged=judged))}</span>' if figure.bound else ""
    value = f'<span class="value">{escape(quantity(figure.median, figure.unit))}{ratio}</span>'
    return f'<div class="row"><span class="name">{escape(figure.name)}{bound}</span>{bar}{value}</div>'


def _bound_text(figure: Figure, *, judged: bool) -> str:
    word = "" if not judged else "kept: " if figure.kept else "missed: "
    return f" {word}{figure.bound}"
