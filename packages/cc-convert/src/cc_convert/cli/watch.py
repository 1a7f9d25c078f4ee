"""`cc-convert watch`: show today and the current block, and refresh them."""

import gc
import os
import sys
import time
from argparse import Namespace
from datetime import UTC, datetime, tzinfo

from ..log_files.cache import MemoryCache
from ..log_files.files import read_files
from ..log_files.sources import find_logs
from ..logs import merge
from ..prices import Prices
from ..report.blocks import blocks, burn_rate
from ..report.buckets import fill_buckets
from ..report.groups import group
from ..report.sums import Line
from ..rows import FileScan
from .inputs import chosen_prices, chosen_zone
from .output import say, spell_cost, spell_count, text_of
from .plan_limits import kept_uses, logged_uses, running_uses, spell_windows

# Older logs affect neither today nor the current block, in any time zone.
_RECENT = 2 * 86400
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
            text = picture(_recent_scans(options, cache), options, prices, zone)
            if text != shown:
                shown = text
                # Cursor home, each line cleared to its end, the rest of the screen cleared: no flicker.
                drawn = text.replace("\n", "\x1b[K\n")
                print(f"\x1b[H{drawn}\x1b[J" if redraw else text, flush=True)  # noqa: T201 - the output of the command
            if options.once:
                return 0
            time.sleep(max(_LEAST_INTERVAL, options.interval))
    except KeyboardInterrupt:
        if redraw:
            say("")
        return 0


def _recent_scans(options: Namespace, cache: MemoryCache) -> list[FileScan]:
    since = time.time() - _RECENT
    recent: list[str] = []
    for path in find_logs(options.sources):
        try:
            if os.path.getmtime(path) >= since:
                recent.append(path)
        except OSError:
            continue  # deleted meanwhile
    return read_files(recent, cache=cache)


def picture(scans: list[FileScan], options: Namespace, prices: Prices, zone: tzinfo | None) -> str:
    """Return the text to display."""
    now = time.time()
    buckets = fill_buckets(merge(scans).priced(prices, options.cost))
    today = datetime.fromtimestamp(now, zone).date().isoformat()
    day = next((line for line in group(buckets, "day", zone) if line.key == today), Line(today))
    block = next((line for line in blocks(buckets, zone, now=now) if line.about.get("kind") == "active"), None)
    table = [["", "Requests", "Input", "Output", "Cache write", "Cache read", "Cost"], _cells(f"today, {today}", day)]
    text = ""
    if block:
        table.append(_cells(f"block until {block.about['ends'][11:]}", block))
        tokens, cost = burn_rate(block, now)
        text = f"{spell_count(int(tokens))} tokens and {spell_cost(cost)} per hour in this block\n"
    by_model = sorted(day.models.items(), key=lambda one: -one[1])
    models = "".join(f"{spell_cost(cost):>10}  {model}\n" for model, cost in by_model if cost)
    return f"{text_of(table)}{text}{models}{_plan(scans, zone)}"


def _plan(scans: list[FileScan], zone: tzinfo | None) -> str:
    """Return the use of the plan, if the status line received it, or a log of stream-json notes it."""
    now = datetime.now(UTC)
    told, logged = kept_uses(), logged_uses(scans)
    uses = [*told, *logged]
    windows = running_uses(uses, now)
    if not windows:
        return ""
    newest = max(windows, key=lambda use: use.time)
    source = "told to the status line" if newest in told else "logged"
    age = int(max(0.0, now.timestamp() - newest.time) // 60)
    return f"{' | '.join(spell_windows(windows, uses, now, zone, brief=False))} ({source} {age} min ago)\n"


def _cells(name: str, line: Line) -> list[str]:
    written = line.cache_write_5m + line.cache_write_1h
    counts = (line.requests, line.input, line.output, written, line.cache_read)
    return [name, *map(spell_count, counts), spell_cost(line.cost)]
