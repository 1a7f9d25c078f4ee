"""`cc-convert report`: sums by day, week, month, session, model, project, agent, block or tool."""

import json
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any, TextIO, cast

from ..log_files.rows import LABELS
from ..log_files.sources import default_folders
from ..report.alerts import WINDOWS, excesses
from ..report.buckets import Bucket
from ..report.lines import GAP, GroupBy, Line, blocks, group, spell_cost, total, without_future
from . import FINDINGS
from .alerts import say_alerts, unmatched
from .inputs import Overview, chosen_prices, chosen_zone, load_buckets, load_rows, load_titles, mention, overview
from .output import (
    RefusedError,
    is_too_wide,
    iso_time,
    say,
    shortened,
    spell_short,
    without_empty,
    write_output,
    write_records,
    write_table,
)
from .parser import WEEKDAYS

if TYPE_CHECKING:
    from ..report.tools import ToolLine

_TITLE, _SHORT_TITLE = 50, 24
"""Title characters in a table."""
_SHORT = {"Requests": "Reqs", "Cache write": "Write", "Cache read": "Read"}
# The least important columns first: a narrow terminal has no room for them.
_DROPS = (
    "Models", "Hits", "Write", "Read", "Project", "Last", "Unlogged", "Errors", "Title", "Reqs", "Input", "Output",
)  # fmt: skip
_TOOL_DROPS = ("Result size", "95 %", "In all", "Median", "Cost of the answers")
_TITLES = {"week": "Week from", "version": "CLI version", "entrypoint": "Entry point"}


def run(options: Namespace) -> int:
    """Make a report."""
    if any(alert.subject in WINDOWS for alert in options.alerts):
        raise RefusedError("a report knows no plan windows: alerts such as 5h>80% are for cc-convert watch")
    if options.alerts and (options.by == "tool" or options.format == "html"):
        raise RefusedError("alerts are for reports of costs, by anything but tool and not as html")
    if options.format == "html":
        from .convert import write_page

        return write_page(options, transcripts=False)
    if options.by == "tool":
        return _tools(options)
    zone = chosen_zone(options)
    buckets, summary, all_buckets = load_buckets(options)
    if future := without_future(buckets, time.time())[1]:
        say(future)
    lines = _lines(options.by, buckets, options, zone)
    if options.by == "session":
        titles = load_titles(options)
        for line in lines:
            line.about["title"] = titles.get(line.key, "")
    with write_output(options.output, force=options.force) as file:
        _write(file, lines, options, zone, summary)

    def lines_of(subject: str) -> list[Line]:
        return _lines(subject, buckets, options, zone)

    exceeded = excesses(options.alerts, lines_of)
    say_alerts(exceeded)
    # A name that is in the logs, but not in the chosen part of them, has spent nothing there.
    notes = list(unmatched(options.alerts, lambda subject: _lines(subject, all_buckets, options, zone)))
    for note in notes:
        say(note)
    code = mention(summary)
    return FINDINGS if exceeded or notes else code


def _lines(by: str, buckets: list[Bucket], options: Namespace, zone: tzinfo | None) -> list[Line]:
    """Return the lines of a kind, gaps between blocks included."""
    if by == "total":
        return [total(group(buckets, "day", zone))]
    if by == "block":
        return blocks(buckets, zone, current_time=time.time())
    return group(buckets, cast("GroupBy", by), zone, week_start=WEEKDAYS.index(options.week_start))


def _write(file: TextIO, lines: list[Line], options: Namespace, zone: tzinfo | None, summary: Overview) -> None:
    grand_total = total(line for line in lines if line.about.get("kind") != GAP)
    if options.format == "json":
        document = {
            "by": options.by,
            "lines": [_record(line, zone) for line in lines],
            "total": _record(grand_total, zone),
            "prices_as_of": chosen_prices(options).as_of,
            "files": summary.files,
            "lines_lost": summary.lost,
            "lines_damaged": summary.odd,
            "unfinished": summary.unfinished,
            "unpriced": summary.unpriced,
        }
        file.write(json.dumps(document, indent=1) + "\n")
    elif options.format == "csv":
        write_records(
            file, [_record(line, zone) for line in lines], "csv", None if lines else _record(grand_total, zone)
        )
    elif not lines:
        file.write(f"No requests in {summary.files:,} logs; read: {', '.join(options.sources or default_folders())}\n")
    else:
        table = _table(lines, grand_total, options.by, zone)
        if options.format == "table" and is_too_wide(file, table):
            table = _table(lines, grand_total, options.by, zone, is_short=True)
        write_table(file, table, options.format, has_total=True, drops=_DROPS)


def _record(line: Line, zone: tzinfo | None) -> dict[str, Any]:
    return {
        "key": line.key,
        **line.about,
        "requests": line.requests,
        "errors": line.errors,
        **line.amounts._asdict(),
        "tokens": line.tokens,
        "cache_hits": line.cache_hits,
        "cost": round(line.cost, 9),
        "unlogged_cost": round(line.unlogged_cost, 9),
        "unpriced_tokens": line.unpriced,
        "first": iso_time(line.first, zone),
        "last": iso_time(line.last, zone),
        "models": {model: round(cost, 9) for model, cost in line.models.items()},
    }


def _table(
    lines: list[Line], grand_total: Line, by: str, zone: tzinfo | None, *, is_short: bool = False
) -> list[list[str]]:
    """Return the table for people; for a narrow terminal with rounded counts and shortened names."""
    labels = [] if is_short else ["Branch", "Host", "Entry point", "CLI version"]
    extra = {"session": ["Title", "Last", "Project", *labels], "block": ["Until"]}.get(by, [])
    models = [] if by == "model" or is_short else ["Models"]
    sums = ["Requests", "Errors", "Input", "Output", "Cache write", "Cache read", "Hits", "Cost", "Unlogged"]
    table = [[_TITLES.get(by, by.capitalize()), *extra, *sums, *models]]
    parts = _Parts(lines) if is_short else None
    for line in [*lines, grand_total]:
        if line.about.get("kind") == GAP:
            table.append([line.key, line.about["ends"], *[""] * 7, "gap", "", *[""] * len(models)])
            continue
        names = [line.key, *([""] * len(extra) if line is grand_total else _more(line, by, zone, is_short=is_short))]
        numbers = _numbers(line, spell_short if is_short else "{:,}".format)
        if parts:
            names = [parts.of(heading, name) for heading, name in zip(table[0], names, strict=False)]
        table.append([*names, *numbers, *(_models(line.models) for _ in models)])
    table = without_empty(table, "Errors", "Unlogged", *extra)
    if is_short:
        table[0] = [_SHORT.get(heading, heading) for heading in table[0]]
    return table


def _more(line: Line, by: str, zone: tzinfo | None, *, is_short: bool) -> list[str]:
    if by == "session":
        last_time = datetime.fromtimestamp(line.last, zone).strftime("%Y-%m-%d %H:%M") if line.last else ""
        title = shortened(line.about["title"], _SHORT_TITLE if is_short else _TITLE)
        return [title, last_time, line.about["project"], *(line.about[name] for name in LABELS if not is_short)]
    return [line.about["ends"] + (" (now)" if line.about["kind"] == "active" else "")] if by == "block" else []


class _Parts:
    """Shortens names in a table to their distinctive parts: a last folder, an id's first part, a time without year."""

    def __init__(self, lines: list[Line]) -> None:
        folders = {folder for line in lines for folder in (line.key, line.about.get("project", ""))}
        last_folders = Counter(map(_last_folder, folders))
        self._shared = {name for name, number in last_folders.items() if number > 1}

    def of(self, heading: str, name: str) -> str:
        """Return the part of a name in a column. Two folders with the same last part keep their full names."""
        if heading in ("Project", "Folder") and _last_folder(name) not in self._shared:
            return _last_folder(name)
        if heading in ("Block", "Until", "Last"):
            return name[5:] if name[10:11] == " " else name
        is_id = heading == "Session" and len(name) == len("01234567-0123-0123-0123-0123456789ab")
        return name[:8] if is_id else name


def _last_folder(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2]


def _numbers(line: Line, spell: Callable[[int], str]) -> list[str]:
    amounts = line.amounts.unsplit
    counts = (amounts.input, amounts.output, amounts.cache_write_5m, amounts.cache_read)
    errors = spell(line.errors) if line.errors else ""
    hits = "" if line.cache_hits is None else f"{line.cache_hits:.0%}"
    unlogged = spell_cost(line.unlogged_cost) if line.unlogged_cost else ""
    return [spell(line.requests), errors, *map(spell, counts), hits, spell_cost(line.cost, line.unpriced), unlogged]


def _models(models: dict[str, float]) -> str:
    names = sorted(models, key=lambda name: -models[name])
    short_names = [name.removeprefix("claude-") or "unknown" for name in names]
    return ", ".join(short_names[:3]) + (f" +{len(short_names) - 3}" if len(short_names) > 3 else "")


# --- tools


def _tools(options: Namespace) -> int:
    from ..log_files.events import read_events
    from ..report.tools import tool_lines

    if options.dask:
        raise RefusedError("the times of tools are read from the logs again, which --dask has elsewhere")
    rows, logs = load_rows(options)
    sessions = {row.session for row in rows}
    events = (event for path in logs.files for event in read_events(path) if event.session in sessions)
    lines = tool_lines(rows, events)
    with write_output(options.output, force=options.force) as file:
        if options.format in ("json", "csv"):
            write_records(file, [_tool_record(line) for line in lines], options.format)
        elif not lines:
            file.write("No tool calls.\n")
        else:
            write_table(file, _tool_table(lines), options.format, drops=_TOOL_DROPS)
    return mention(overview(logs, rows))


def _tool_record(line: "ToolLine") -> dict[str, Any]:
    return {
        **{name: getattr(line, name) for name in ("key", "calls", "failures", "unanswered")},
        "seconds": round(sum(line.seconds), 3),
        "seconds_median": line.quantile(0.5),
        "seconds_p95": line.quantile(0.95),
        "result_characters": line.result_characters,
        "output": line.output,
        "cost": round(line.cost, 9),
    }


def _tool_table(lines: "list[ToolLine]") -> list[list[str]]:
    table = [["Tool", "Calls", "Failed", "Median", "95 %", "In all", "Result size", "Cost of the answers"]]
    for line in lines:
        times = (line.quantile(0.5), line.quantile(0.95), sum(line.seconds))
        seconds = ["" if value is None else f"{value:,.2f} s" for value in times]
        cost = spell_cost(line.cost, line.unpriced)
        table.append([line.key, f"{line.calls:,}", f"{line.failures:,}", *seconds, f"{line.result_characters:,}", cost])
    return table
