"""Chart shapes as SVG text. Colours are classes, so that the page has a dark mode."""

import math
from collections.abc import Iterable

from .safe import text

__all__ = ["HEIGHT", "PLOT", "WIDTH", "axis", "circle", "label", "line", "nice_ceiling", "path", "picture", "rect"]

WIDTH, HEIGHT = 640, 190
"""Small units, so that a phone shows the whole chart with readable labels."""
PLOT = (52.0, 12.0, 632.0, 162.0)
"""The plot area: `x0` and `y0` are left and top, `x1` and `y1` right and bottom."""


def picture(parts: Iterable[str], title: str, height: int = HEIGHT) -> str:
    """Return a picture; its title describes it for screen readers."""
    name = text(title)
    return (
        f'<div class="chart"><svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{name}">'
        f"<title>{name}</title>{''.join(parts)}</svg></div>\n"
    )


def rect(x: float, y: float, width: float, height: float, kind: str, tip: str = "") -> str:
    """Return a rectangle."""
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{max(height, 0):.1f}">'
        f"{_title(tip)}</rect>"
    )


def circle(x: float, y: float, radius: float, kind: str, tip: str = "") -> str:
    """Return a dot."""
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}">{_title(tip)}</circle>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str, tip: str = "") -> str:
    """Return a straight line."""
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}">{_title(tip)}</line>'


def _title(tip: str) -> str:
    return f"<title>{text(tip)}</title>" if tip else ""


def path(points: Iterable[tuple[float, float]], kind: str) -> str:
    """Return a line through points."""
    steps = " ".join(f"{'L' if number else 'M'}{x:.1f} {y:.1f}" for number, (x, y) in enumerate(points))
    return f'<path class="{kind}" d="{steps}"/>' if steps else ""


def label(x: float, y: float, content: str, anchor: str = "start", kind: str = "axis") -> str:
    """Return a label."""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text(content)}</text>'


def nice_ceiling(value: float) -> float:
    """Return the next larger number whose quarters are easy to read."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(
        step * power for step in (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 5, 6, 8, 10) if step * power >= value * (1 - 1e-9)
    )


def axis(top: float, spell: "Spell") -> list[str]:
    """Return four lines across the plot, with their values."""
    x0, y0, x1, y1 = PLOT
    parts: list[str] = []
    for number in range(5):
        y = y1 - (y1 - y0) * number / 4
        parts.append(line(x0, y, x1, y, "grid"))
        parts.append(label(x0 - 6, y + 4, spell(top * number / 4), "end"))
    return parts


class Spell:
    """Format for values beside an axis."""

    def __init__(self, before: str = "", after: str = "") -> None:
        self._before, self._after = before, after

    def __call__(self, value: float) -> str:
        for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
            if value >= size:
                return f"{self._before}{value / size:.3g}{letter}{self._after}"
        return f"{self._before}{value:.3g}{self._after}"
