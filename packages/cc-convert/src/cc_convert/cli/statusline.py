"""`cc-convert statusline`: one line for Claude Code's status line.

Claude Code calls it with a JSON object on stdin, and shows its output. Calls are frequent, so it reads only the new
part of recently changed logs.
"""

import json
import os
import sys
import time
from argparse import Namespace
from datetime import UTC, datetime
from typing import Any, cast

from ..log_files.cache import Cache
from ..log_files.files import read_files
from ..log_files.sources import LogsNotFoundError, find_logs
from ..logs import merge
from ..report.blocks import BLOCK, blocks
from ..report.buckets import Bucket, fill_buckets
from ..report.groups import group
from .inputs import chosen_prices, chosen_zone
from .output import spell_cost
from .plan_limits import keep_uses, kept_uses, spell_windows, told_uses

_RECENT = 2 * 86400


def run(options: Namespace) -> int:
    """Print the line, for any input on stdin."""
    asked = _asked()
    try:
        buckets = _buckets(options)
    except LogsNotFoundError:
        buckets = []
    zone, now = chosen_zone(options), time.time()
    today = datetime.fromtimestamp(now, zone).date().isoformat()
    day = next((line for line in group(buckets, "day", zone) if line.key == today), None)
    block = next((line for line in blocks(buckets, zone, now=now) if line.about.get("kind") == "active"), None)
    parts = [
        _text(asked, "model", "display_name"),
        _share("context", asked, "context_window", "used_percentage"),
        _session(asked, buckets),
        f"today {spell_cost(day.cost if day else 0.0)}",
    ]
    if block:
        left = int(block.first // 3600 * 3600 + BLOCK - now) // 60
        parts.append(f"block {spell_cost(block.cost)}, {left // 60}h{left % 60:02} left")
    moment = datetime.now(UTC)
    if uses := told_uses(asked.get("rate_limits"), moment):
        known = kept_uses()
        parts += spell_windows(uses, [*known, *uses], moment, zone, brief=True)
        keep_uses(uses, known)
    print(" | ".join(part for part in parts if part))  # noqa: T201 - the output of the command
    return 0


def _asked() -> dict[str, Any]:
    if sys.stdin.isatty():
        return {}
    try:
        asked: object = json.loads(sys.stdin.buffer.read())
    except ValueError:
        return {}
    return cast("dict[str, Any]", asked) if isinstance(asked, dict) else {}


def _value(asked: dict[str, Any], *path: str) -> object:
    value: object = asked
    for name in path:
        value = cast("dict[str, object]", value).get(name) if isinstance(value, dict) else None
    return value


def _share(name: str, asked: dict[str, Any], *path: str) -> str:
    value = _value(asked, *path)
    return f"{name} {value:.0f}%" if isinstance(value, int | float) else ""


def _text(asked: dict[str, Any], *path: str) -> str:
    value = _value(asked, *path)
    return "".join(one for one in value if one.isprintable()) if isinstance(value, str) else ""


def _session(asked: dict[str, Any], buckets: list[Bucket]) -> str:
    """Prefer Claude Code's own figure, if given; it includes requests that are not in the log yet."""
    stated = _value(asked, "cost", "total_cost_usd")
    if isinstance(stated, int | float):
        return f"session {spell_cost(float(stated))}"
    session = _text(asked, "session_id")
    return f"session {spell_cost(sum(one.cost for one in buckets if one.session == session))}" if session else ""


def _buckets(options: Namespace) -> list[Bucket]:
    since = time.time() - _RECENT
    recent = [path for path in find_logs() if os.path.exists(path) and os.path.getmtime(path) >= since]
    return fill_buckets(merge(read_files(recent, cache=Cache())).priced(chosen_prices(options), options.cost))
