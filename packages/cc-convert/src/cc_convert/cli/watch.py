"""`cc-convert watch`: show today and the current block, and refresh them."""

import gc
import sys
import time
from argparse import Namespace
from datetime import UTC, datetime, tzinfo

from ..log_files.cache import MemoryCache
from ..log_files.rows import FileScan
from ..logs import merge
from ..prices import Prices
from ..report.blocks import burn_rate
from ..report.buckets import fill_buckets
from ..report.sums import Line
from .inputs import chosen_prices, chosen_zone, current_lines, recent_scans
from .output import say, spell_cost, spell_count, text_of
from .plan_limits import logged_uses, running_uses, spell_windows, stored_uses

# Seconds. Below this, a scan takes longer than the pause.
_LEAST_INTERVAL = 0.2


def run(options: Namespace) -> int:
    """Show until interrupted."""
    gc.enable()  # it runs for days
    zone, prices, cache = chosen_zone(options), chosen_prices(options), MemoryCache()
    redraw = sys.stdout.isatty() and not options.once
    shown = ""
    try:
        while True:
            text = picture(recent_scans(options.sources, cache), options, prices, zone)
            if text != shown:
                shown = text
                # Cursor home, each line cleared to its end, then the screen below: no flicker.
                drawn = text.replace("\n", "\x1b[K\n")
                print(f"\x1b[H{drawn}\x1b[J" if redraw else text, flush=True)  # noqa: T201 - the command's output
            if options.once:
                return 0
            time.sleep(max(_LEAST_INTERVAL, options.interval))
    except KeyboardInterrupt:
        if redraw:
            say("")
        return 0


def picture(scans: list[FileScan], options: Namespace, prices: Prices, zone: tzinfo | None) -> str:
    """Return the text to display."""
    now = time.time()
    day, block = current_lines(fill_buckets(merge(scans).priced(prices, options.cost)), zone, now)
    table = [["", "Requests", "Input", "Output", "Cache write", "Cache read", "Cost"], _cells(f"today, {day.key}", day)]
    text = ""
    if block:
        table.append(_cells(f"block until {block.about['ends'][11:]}", block))
        tokens, cost = burn_rate(block, now)
        text = f"{spell_count(int(tokens))} tokens and {spell_cost(cost)} per hour in this block\n"
    by_model = sorted(day.models.items(), key=lambda item: -item[1])
    models = "".join(f"{spell_cost(cost):>10}  {model}\n" for model, cost in by_model if cost)
    return f"{text_of(table)}{text}{models}{_plan(scans, zone)}"


def _plan(scans: list[FileScan], zone: tzinfo | None) -> str:
    """Return the plan's windows, if the status line received them, or a stream-json log notes them."""
    now = datetime.now(UTC)
    stored, logged = stored_uses(), logged_uses(scans)
    uses = [*stored, *logged]
    windows = running_uses(uses, now)
    if not windows:
        return ""
    newest = max(windows, key=lambda use: use.time)
    source = "told to the status line" if newest in stored else "logged"
    age = int(max(0.0, now.timestamp() - newest.time) // 60)
    return f"{' | '.join(spell_windows(windows, uses, now, zone, brief=False))} ({source} {age} min ago)\n"


def _cells(name: str, line: Line) -> list[str]:
    written = line.cache_write_5m + line.cache_write_1h
    counts = (line.requests, line.input, line.output, written, line.cache_read)
    return [name, *map(spell_count, counts), spell_cost(line.cost)]
