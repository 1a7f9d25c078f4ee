"""`cc-convert watch`: show today and the current block, and refresh them."""

import gc
import json
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from textwrap import wrap
from typing import NamedTuple, cast

from ..log_files.cache import MemoryCache
from ..log_files.rows import FileScan
from ..log_files.sources import LogsNotFoundError
from ..logs import merge
from ..prices import Prices
from ..report.alerts import NAMED, Excess, excesses
from ..report.buckets import fill_buckets
from ..report.forecast import WindowUse
from ..report.lines import GroupBy, Line, burn_rate, group, spell_cost, total, without_future
from . import FINDINGS, OK
from .alerts import say_alerts, unmatched
from .inputs import buckets_of_day, chosen_prices, chosen_zone, current_lines, recent_scans
from .output import RefusedError, fit_table, say, shortened, spell_short, terminal_size, text_of, visible
from .plan_limits import logged_uses, running_uses, spell_windows, stored_uses

# Seconds. Below this, a scan takes longer than the pause.
_LEAST_INTERVAL = 0.2
_DROPS = ("Cache write", "Cache read", "Input", "Output", "Requests")
_MOST_NAME = 40
_LONGER = ("week", "month")


class Picture(NamedTuple):
    """Text to display, and the alerts in it."""

    text: str
    excesses: list[Excess]


def run(options: Namespace) -> int:
    """Show until interrupted."""
    if alert := next((alert for alert in options.alerts if alert.subject in _LONGER), None):
        raise RefusedError(f"watch knows today's costs alone: alerts such as {alert.text} are for cc-convert report")
    gc.enable()  # it runs for days
    zone, prices, cache = chosen_zone(options), chosen_prices(options), MemoryCache()
    redraw = sys.stdout.isatty() and not (options.once or options.json)
    shown, above_before = "", set[tuple[str, str]]()
    try:
        while True:
            columns, lines = terminal_size() if sys.stdout.isatty() else (None, None)
            try:
                scans, problem = recent_scans(options.sources, cache), ""
            except LogsNotFoundError as error:
                # A folder may be away for a while, and there is none before the first session.
                if options.once or (options.sources and not shown):
                    raise
                scans, problem = [], f"note: {error}\n"
            text, exceeded = picture(scans, options, prices, zone, columns)
            text += problem
            passed = [excess for excess in exceeded if (excess.alert.text, excess.key) not in above_before]
            above_before = {(excess.alert.text, excess.key) for excess in exceeded}
            if text != shown:
                shown = text
                drawn = _redrawn(text, columns or 80, lines or 24) if redraw else f"{text}\n"
                print("" if options.json else drawn, end="", flush=True)  # noqa: T201 - the command output
            if options.json:
                for excess in passed:
                    row = {"alert": excess.alert.text, "name": excess.key, "message": visible(excess.message)}
                    print(json.dumps(row), flush=True)  # noqa: T201 - the command output
            elif not redraw:
                say_alerts(passed)
            if options.once:
                return FINDINGS if exceeded else OK
            time.sleep(max(_LEAST_INTERVAL, options.interval))
    except KeyboardInterrupt:
        if redraw:
            say("")
        return OK


def _redrawn(text: str, columns: int, lines: int) -> str:
    """Return the text for a terminal, cut to its size: a wrapped line would move the heading out of sight."""
    cut = [shortened(line, columns) for line in text.splitlines()[: lines - 1]]
    # Cursor home, each line cleared to its end, then the screen below: no flicker.
    return "\x1b[H" + "".join(f"{line}\x1b[K\n" for line in cut) + "\x1b[J"


def picture(
    scans: list[FileScan], options: Namespace, prices: Prices, zone: tzinfo | None, columns: int | None = None
) -> Picture:
    """Return the text to display, at most `columns` wide if given, and the values above their limits."""
    current_time = time.time()
    buckets = fill_buckets(merge(scans).priced(prices, options.cost))
    buckets, future = without_future(buckets, current_time)
    day, block = current_lines(buckets, zone, current_time)
    today = buckets_of_day(buckets, zone, current_time)
    uses = [*(stored := stored_uses()), *logged_uses(scans)]
    windows = running_uses(uses, datetime.now(UTC))
    parts = [
        f"Claude Code, {datetime.fromtimestamp(current_time, zone):%Y-%m-%d %H:%M}\n\n",
        _sums(day, block, current_time, columns),
    ]
    # Failed requests have no model.
    if models := [line for line in group(today, "model", zone) if line.requests or line.tokens]:
        parts.append("\n" + _models(models, columns))
    if windows:
        parts.append("\n" + _plan(windows, uses, stored, zone, columns))
    lines = {"day": [day], "block": [block] if block else [], "total": [total([day])]}
    lines |= {subject: group(today, cast("GroupBy", subject), zone) for subject in NAMED}
    exceeded = excesses(options.alerts, lines.__getitem__, windows)
    notes = [*unmatched(options.alerts, lambda subject: group(buckets, cast("GroupBy", subject), zone))]
    notes += [future] * bool(future)
    parts += [f"{visible(line)}\n" for line in (*(f"ALERT {excess.message}" for excess in exceeded), *notes)]
    return Picture("".join(parts), exceeded)


def _sums(day: Line, block: Line | None, current_time: float, columns: int | None) -> str:
    table = [["", "Requests", "Input", "Output", "Cache write", "Cache read", "Cost"], _cells(f"today, {day.key}", day)]
    rate = ""
    if block:
        table.append(_cells(f"block until {block.about['ends'][11:]}", block))
        pace = burn_rate(block, current_time)
        tokens, cost = pace or (block.tokens, block.cost)
        span = "per hour in" if pace else f"in the first {max(1, int((current_time - block.first) / 60))} min of"
        rate = f"{int(tokens):,} tokens and {spell_cost(cost, block.unpriced)} {span} this block"
        rate = "".join(f"{line}\n" for line in wrap(rate, columns or len(rate)))
    return text_of(fit_table(table, _DROPS, columns)[0]) + rate


def _cells(name: str, line: Line) -> list[str]:
    amounts = line.amounts.unsplit
    counts = (line.requests, amounts.input, amounts.output, amounts.cache_write_5m, amounts.cache_read)
    return [name, *(f"{count:,}" for count in counts), spell_cost(line.cost, line.unpriced)]


def _models(models: Sequence[Line], columns: int | None) -> str:
    table = [["Today by model", "Requests", "Tokens", "Cost"]]
    for line in models:
        cost = spell_cost(line.cost, line.unpriced)
        table.append([shortened(line.key, _MOST_NAME), f"{line.requests:,}", spell_short(line.tokens), cost])
    unpriced = sum(line.unpriced for line in models)
    note = f"* without {unpriced:,} tokens that have no price\n" if unpriced else ""
    return text_of(fit_table(table, ("Requests", "Tokens"), columns)[0]) + note


def _plan(
    windows: list[WindowUse], uses: list[WindowUse], stored: list[WindowUse], zone: tzinfo | None, columns: int | None
) -> str:
    """Return the plan windows, which the status line received, or a stream-json log notes."""
    current_time = datetime.now(UTC)
    newest = max(windows, key=lambda use: use.time)
    age = int(max(0.0, current_time.timestamp() - newest.time) // 60)
    source = f"({'told to the status line' if newest in stored else 'logged'} {age} min ago)"
    parts = spell_windows(windows, uses, current_time, zone, brief=False)
    line = f"{' | '.join(parts)} {source}\n"
    return line if columns is None or len(line) <= columns else "\n".join([*parts, source, ""])
