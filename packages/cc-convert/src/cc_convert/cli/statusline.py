"""`cc-convert statusline`: one line for the Claude Code status line.

Claude Code calls it with a JSON object on stdin, and shows its output. Calls are frequent, so it reads only new
lines in recently changed logs.
"""

import json
import sys
import time
from argparse import Namespace
from datetime import UTC, datetime
from typing import cast

from ..log_files.cache import Cache
from ..log_files.sources import LogsNotFoundError
from ..logs import merge
from ..report.buckets import Bucket, fill_buckets
from ..report.lines import BLOCK, spell_cost, without_future
from .inputs import chosen_prices, chosen_zone, current_lines, recent_scans
from .output import say
from .plan_limits import spell_windows, status_line_uses, store_uses, stored_uses


def run(options: Namespace) -> int:
    """Print the line, for any input on stdin."""
    payload = _read_payload()
    try:
        logs = merge(recent_scans((), Cache()))
        buckets = fill_buckets(logs.priced(chosen_prices(options), options.cost))
    except LogsNotFoundError:
        buckets = []
    zone, current_time = chosen_zone(options), time.time()
    past, future = without_future(buckets, current_time)
    day, block = current_lines(past, zone, current_time)
    context = _value(payload, "context_window", "used_percentage")
    parts = [
        _text(payload, "model", "display_name"),
        f"context {context:.0f}%" if isinstance(context, int | float) else "",
        _session(payload, buckets),
        f"today {spell_cost(day.cost, day.unpriced)}",
    ]
    if block:
        minutes = int(block.first // 3600 * 3600 + BLOCK - current_time) // 60
        parts.append(f"block {spell_cost(block.cost, block.unpriced)}, {minutes // 60}h{minutes % 60:02} left")
    if future:
        say(future)
        parts.append("times in the future left out")
    moment = datetime.now(UTC)
    if uses := status_line_uses(_value(payload, "rate_limits"), moment):
        earlier = stored_uses()
        parts += spell_windows(uses, [*earlier, *uses], moment, zone, brief=True)
        store_uses(uses, earlier)
    print(" | ".join(part for part in parts if part))  # noqa: T201 - the command output
    return 0


def _read_payload() -> object:
    try:
        return None if sys.stdin.isatty() else json.loads(sys.stdin.buffer.read())
    except ValueError:
        return None


def _value(payload: object, *path: str) -> object:
    value = payload
    for name in path:
        value = cast("dict[str, object]", value).get(name) if isinstance(value, dict) else None
    return value


def _text(payload: object, *path: str) -> str:
    value = _value(payload, *path)
    return "".join(character for character in value if character.isprintable()) if isinstance(value, str) else ""


def _session(payload: object, buckets: list[Bucket]) -> str:
    """Prefer the Claude Code figure, if given; it includes requests that are not in the log yet."""
    stated = _value(payload, "cost", "total_cost_usd")
    if isinstance(stated, int | float):
        return f"session {spell_cost(float(stated))}"
    session = _text(payload, "session_id")
    session_buckets = [bucket for bucket in buckets if bucket.session == session]
    cost = spell_cost(
        sum(bucket.cost for bucket in session_buckets), sum(bucket.unpriced for bucket in session_buckets)
    )
    return f"session {cost}" if session else ""
