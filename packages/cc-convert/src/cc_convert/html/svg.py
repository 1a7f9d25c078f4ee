"""Chart shapes as SVG text. Colours are classes, so that the page has a dark mode."""

import math
from collections.abc import Iterable

from .texts import text

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
    return _shape("rect", kind, tip, x=x, y=y, width=max(width, 0), height=max(height, 0))


def circle(x: float, y: float, radius: float, kind: str, tip: str = "") -> str:
    """Return a dot."""
    return _shape("circle", kind, tip, cx=x, cy=y, r=radius)


def line(x1: float, y1: float, x2: float, y2: float, kind: str, tip: str = "") -> str:
    """Return a straight line."""
    return _shape("line", kind, tip, x1=x1, y1=y1, x2=x2, y2=y2)


def _shape(name: str, kind: str, tip: str, **sizes: float) -> str:
    attributes = "".join(f' {attribute}="{size:.1f}"' for attribute, size in sizes.items())
    return f'<{name} class="{kind}"{attributes}>{f"<title>{text(tip)}</title>" if tip else ""}</{name}>'


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


def axis(top: float, prefix: str = "", suffix: str = "") -> list[str]:
    """Return four lines across the plot, with their values between two texts."""
    x0, y0, x1, y1 = PLOT
    parts: list[str] = []
    for number in range(5):
        y = y1 - (y1 - y0) * number / 4
        parts.append(line(x0, y, x1, y, "grid"))
        parts.append(label(x0 - 6, y + 4, f"{prefix}{spell(top * number / 4)}{suffix}", "end"))
    return parts


def spell(value: float) -> str:
    """Format a value beside an axis."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"
