"""Charts over all sessions: where the cost went, by day and model, cache hits, weekly hours, five-hour blocks."""

from collections.abc import Callable, Iterable
from datetime import date, datetime, timedelta, tzinfo
from math import ceil

from ..report.buckets import QUARTER, Bucket
from ..report.lines import BLOCK, GAP, NO_TIME, Line, blocks, group, total
from .svg import PLOT, axis, circle, label, line, nice_ceiling, path, picture, rect
from .texts import text

# More days would be thinner than a pixel on a phone; then a column is a week.
_MOST_DAYS = 92
_MOST_BLOCKS = 60
# With fewer columns, a part of the plot stays empty: a single day must not fill it.
_FEWEST = 12
_COLOURS = 8
# Room for a date, and for a date with a time, in a phone's larger font.
_DATE, _MOMENT = 66, 130
_LAST = PLOT[2] - 90
# Bars beside names, of which a phone's larger font leaves room for so many characters.
_BAR, _BAR_HEIGHT, _MOST_BARS, _NAME = (202.0, 500.0), 24, 6, 20
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def model_classes(buckets: list[Bucket]) -> dict[str, str]:
    """Return a colour for each model, the most expensive first; the cheapest ones share the last colour."""
    models = [line.key for line in group(buckets, "model") if line.key != NO_TIME and line.tokens]
    return {model: f"c{min(number, _COLOURS - 1)}" for number, model in enumerate(models)}


def legend(classes: dict[str, str]) -> str:
    """Return the legend for the colours."""
    items = (f'<li><span class="key {kind}b"></span>{text(model)}</li>' for model, kind in classes.items())
    return f'<ul class="legend">{"".join(items)}</ul>\n'


def share_chart(kind: str, lines: Iterable[Line], name: Callable[[Line], str], classes: dict[str, str]) -> str:
    """Draw the most expensive lines and the sum of the others, each stacked by model, with their share of the cost."""
    ordered = sorted((share for share in lines if share.cost), key=lambda share: -share.cost)
    shown, remainder = ordered[:_MOST_BARS], total(ordered[_MOST_BARS:])
    names = [name(share) for share in shown]
    if remainder.cost:
        shown, names = [*shown, remainder], [*names, f"{len(ordered) - _MOST_BARS:,} others"]
    total_cost, longest = sum(share.cost for share in shown), max((share.cost for share in shown), default=0.0)
    x0, x1 = _BAR
    parts: list[str] = []
    for number, (share, called) in enumerate(zip(shown, names, strict=True)):
        y, x = _BAR_HEIGHT * number, x0
        whole_name = share.about.get("title") or share.key or called
        parts.append(label(x0 - 8, y + 15, called if len(called) <= _NAME else f"{called[: _NAME - 1]}…", "end"))
        for model, colour in classes.items():
            if cost := share.models.get(model, 0.0):
                width = (x1 - x0) * cost / longest
                parts.append(
                    rect(
                        x,
                        y + 3,
                        width,
                        _BAR_HEIGHT - 8,
                        colour,
                        f"{whole_name}: ${cost:,.2f} {model}",
                    )
                )
                x += width
        parts.append(label(PLOT[2], y + 15, f"${share.cost:,.2f} · {share.cost / total_cost:.0%}", "end"))
    return picture(parts, f"Cost by {kind}", _BAR_HEIGHT * len(shown)) if parts else ""


def periods(buckets: list[Bucket], zone: tzinfo | None) -> tuple[str, list[Line]]:
    """Return `day` or `week`, and each from the first to the last, including empty ones."""
    days = [line for line in group(buckets, "day", zone) if line.key != NO_TIME]
    if not days:
        return "day", []
    first_day, last_day = date.fromisoformat(days[0].key), date.fromisoformat(days[-1].key)
    step, name = (1, "day") if (last_day - first_day).days < _MOST_DAYS else (7, "week")
    lines = {period.key: period for period in group(buckets, name, zone) if period.key != NO_TIME}
    start = date.fromisoformat(next(iter(lines)))
    count = (last_day - start).days // step + 1
    # A wrong clock must not produce a page with years.
    keys = [(start + timedelta(step * number)).isoformat() for number in range(count)] if count < 600 else lines
    return name, [lines.get(key) or Line(key) for key in keys]


def _columns(count: int) -> tuple[float, Callable[[int], float]]:
    x0, _, x1, _ = PLOT
    width = (x1 - x0) / max(count, _FEWEST)
    return width, lambda number: x0 + width * number


def _dates(lines: list[Line]) -> list[str]:
    width, at = _columns(len(lines))
    one_year = not lines or lines[0].key[:4] == lines[-1].key[:4]
    step = max(1, ceil((_DATE if one_year else _MOMENT) / width))
    return [
        label(at(number) + width / 2, PLOT[3] + 20, lines[number].key[5 if one_year else 0 :], "middle")
        for number in range(0, len(lines), step)
    ]


def cost_chart(name: str, lines: list[Line], classes: dict[str, str]) -> str:
    """Draw the cost per day or week, stacked by model."""
    top = nice_ceiling(max((period.cost for period in lines), default=0.0))
    width, at = _columns(len(lines))
    _, y0, _, y1 = PLOT
    parts = axis(top, "$")
    for number, period in enumerate(lines):
        y = y1
        for model, kind in classes.items():
            cost = period.models.get(model, 0.0)
            height = (y1 - y0) * cost / top
            if height:
                y -= height
                tip = f"{period.key}: ${cost:,.2f} {model}; ${period.cost:,.2f} in all"
                parts.append(rect(at(number) + width * 0.1, y, width * 0.8, height, kind, tip))
    return picture([*parts, *_dates(lines)], f"Cost per {name} by model")


def hit_chart(name: str, lines: list[Line]) -> str:
    """Draw the input's share from the cache, per day or week."""
    width, at = _columns(len(lines))
    _, y0, _, y1 = PLOT
    points = [
        (at(number) + width / 2, y1 - (y1 - y0) * period.cache_hits, period)
        for number, period in enumerate(lines)
        if period.cache_hits is not None
    ]
    parts = [*axis(100, suffix=" %"), path([(x, y) for x, y, _ in points], "curve c0s")]
    for x, y, period in points:
        parts.append(circle(x, y, 3, "c0", f"{period.key}: {period.cache_hits or 0:.1%} of the input"))
    return picture([*parts, *_dates(lines)], f"Share of input from the cache per {name}")


def hour_chart(buckets: list[Bucket], zone: tzinfo | None) -> str:
    """Draw the tokens by weekday and hour."""
    sums = [[0] * 24 for _ in _DAYS]
    for bucket in buckets:
        if bucket.quarter is not None:
            when = datetime.fromtimestamp(bucket.quarter * QUARTER, zone)
            sums[when.weekday()][when.hour] += bucket.amounts.tokens
    top = max(map(max, sums)) or 1
    x0, y0, x1, y1 = PLOT
    width, height = (x1 - x0) / 24, (y1 - y0) / 7
    parts: list[str] = []
    for day, hours in enumerate(sums):
        y = y0 + height * day
        parts.append(label(x0 - 8, y + height / 2 + 4, _DAYS[day], "end"))
        for hour, tokens in enumerate(hours):
            # A square root, so that a quiet hour differs from an empty hour.
            kind = f"h{round(9 * (tokens / top) ** 0.5)}" if tokens else "h"
            tip = f"{_DAYS[day]} {hour}:00: {tokens:,} tokens"
            parts.append(rect(x0 + width * hour + 1, y + 1, width - 2, height - 2, kind, tip))
    parts += [label(x0 + width * (hour + 0.5), y1 + 20, f"{hour}", "middle") for hour in range(0, 24, 3)]
    return picture(parts, "Tokens by weekday and hour")


def block_chart(buckets: list[Bucket], zone: tzinfo | None, current_time: float) -> str:
    """Draw the latest five-hour blocks."""
    lines = [block for block in blocks(buckets, zone, current_time=current_time) if block.about["kind"] != GAP][
        -_MOST_BLOCKS:
    ]
    top = nice_ceiling(max((block.cost for block in lines), default=0.0))
    width, at = _columns(len(lines))
    _, y0, _, y1 = PLOT
    parts = axis(top, "$")
    for number, block in enumerate(lines):
        height = (y1 - y0) * block.cost / top
        share = min(1.0, (block.last - block.first) / BLOCK)
        active = block.about["kind"] == "active"
        counts = f"${block.cost:,.2f}, {block.tokens:,} tokens, {block.requests:,} requests"
        tip = f"{block.key} to {block.about['ends']}: {counts}"
        x = at(number) + width * 0.12
        parts.append(rect(x, y1 - height, width * 0.76, height, "c1" if active else "c0", tip))
        # The used part of the five hours.
        parts.append(line(x, y1 + 3, x + width * 0.76 * share, y1 + 3, "used"))
    step = max(1, ceil(_MOMENT / width))
    parts += [
        label(at(number), y1 + 20, block.key[5:])
        for number, block in enumerate(lines)
        if number % step == 0 and at(number) < _LAST
    ]
    return picture(parts, "Cost of each five-hour block")
