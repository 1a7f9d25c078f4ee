"""The whole page, written in pieces, so that transcripts need not fit into memory."""

import time
from collections.abc import Iterator
from datetime import datetime, tzinfo
from typing import TextIO

from ..log_files.events import Event, read_events
from ..log_files.rows import LABELS, Row
from ..log_files.titles import read_titles
from ..logs import Logs
from ..report.buckets import Bucket, fill_buckets
from ..report.groups import NO_TIME, group, total
from ..report.sums import Line
from .assets import SCRIPT, STYLE, policy
from .charts import block_chart, cost_chart, hit_chart, hour_chart, legend, model_classes, period_of
from .safe import text
from .timeline import context_chart, timeline_chart
from .transcript import search_box, transcript

__all__ = ["write_html"]


def write_html(
    file: TextIO, rows: list[Row], logs: Logs, *, zone: tzinfo | None = None, transcripts: bool = True
) -> None:
    """Write the page; with `transcripts`, each session has a transcript, read again from the logs."""
    buckets = fill_buckets(rows)
    sessions = [line for line in reversed(group(buckets, "session", zone)) if line.key != NO_TIME]
    # A page without transcripts has no text from the conversations.
    titles = read_titles(logs.files) if transcripts else {}
    for line in sessions:
        line.about["title"] = titles.get(line.key, "")
    places = {line.key: f"s{number}" for number, line in enumerate(sessions)}
    file.write(_head())
    file.write('<main><div id="overview">\n')
    file.write(_overview(buckets, zone))
    file.write(_sessions(sessions, places if transcripts else {}, zone))
    file.write("</div>\n")
    if transcripts:
        for line in sessions:
            file.write(_session(line, places[line.key], logs.places.get(line.key, []), zone))
    file.write(f"</main>\n{_foot(logs, zone)}<script>{SCRIPT}</script></body></html>\n")


def _head() -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{text(policy())}">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>Claude Code usage</title>\n<style>{STYLE}</style></head><body>\n"
    )


def _overview(buckets: list[Bucket], zone: tzinfo | None) -> str:
    whole, classes = total(group(buckets, "model", zone)), model_classes(buckets)
    charts = (
        (f"Cost per {period_of(buckets, zone)}", cost_chart(buckets, zone, classes) + legend(classes)),
        ("Input from the cache", hit_chart(buckets, zone)),
        ("Hours of the week", hour_chart(buckets, zone)),
        ("Five-hour blocks", block_chart(buckets, zone, time.time())),
    )
    cards = "".join(f'<section class="card"><h2>{title}</h2>{chart}</section>\n' for title, chart in charts)
    return f"<header><h1>Claude Code usage</h1>{_span(whole, zone)}</header>\n{_facts(whole)}{cards}"


def _span(line: Line, zone: tzinfo | None) -> str:
    return f'<div class="dim">{_moment(line.first, zone)} to {_moment(line.last, zone)}</div>' if line.first else ""


def _moment(when: float, zone: tzinfo | None) -> str:
    return datetime.fromtimestamp(when, zone).strftime("%Y-%m-%d %H:%M") if when else ""


def _facts(line: Line) -> str:
    hits = line.cache_hits
    facts = [
        (f"${line.cost:,.2f}", "cost" + (", not of all models" if line.unpriced else "")),
        (f"{line.requests:,}", "requests"),
        (f"{line.tokens:,}", "tokens"),
        (f"{line.output:,}", "output tokens"),
        ("" if hits is None else f"{hits:.1%}", "of the input from the cache"),
    ]
    if line.errors:
        facts.append((f"{line.errors:,}", "errors"))
    if line.unlogged_cost:
        facts.append((f"${line.unlogged_cost:,.2f}", "in no request, such as compactions"))
    items = "".join(f"<li><b>{value}</b>{name}</li>" for value, name in facts)
    return f'<ul class="facts">{items}</ul>\n'


def _sessions(sessions: list[Line], places: dict[str, str], zone: tzinfo | None) -> str:
    rows = "".join(_session_row(line, places.get(line.key), _moment(line.last, zone)) for line in sessions)
    head = "<th>Last</th><th>Session</th><th>Project</th>"
    head += '<th class="n wide">Requests</th><th class="n wide">Output</th><th class="n">Cost</th>'
    return (
        f'<section class="card"><h2>Sessions</h2>{search_box("sessions", "Search sessions")}<div class="scroll">'
        f'<table><thead><tr>{head}</tr></thead><tbody id="sessions">{rows}</tbody></table></div></section>\n'
    )


def _session_row(line: Line, place: str | None, last: str) -> str:
    # A phone does not show wide columns.
    return (
        f'<tr data-entry><td>{last[:10]}<span class="wide">{last[10:]}</span></td>'
        f'<td class="id">{_link(line, place)}</td><td class="where">{text(line.about["project"])}</td>'
        f'<td class="n wide">{line.requests:,}</td><td class="n wide">{line.output:,}</td>'
        f'<td class="n">${line.cost:,.2f}</td></tr>\n'
    )


def _link(line: Line, place: str | None) -> str:
    name = text(line.about["title"] or line.key)
    # The place is our own name, never a log's text.
    link = f'<a href="#{place}">{name}</a>' if place else name
    return f'{link}<div class="dim">{text(_labels(line))}</div>'


def _labels(line: Line) -> str:
    """Return the line below a title: id, branch, machine, entry point, version."""
    facts = [line.key if line.about["title"] else "", *(line.about[name] for name in LABELS)]
    return " · ".join(fact for fact in facts if fact)


def _session(line: Line, place: str, paths: list[str], zone: tzinfo | None) -> str:
    events = sorted(_events(paths, line.key), key=lambda event: event.time or 0.0)
    charts = [
        ("Timeline", timeline_chart(events, zone)),
        ("Context", context_chart(events)),
    ]
    cards = "".join(f"<h3>{title}</h3>{chart}" for title, chart in charts if chart)
    back = '<a href="#overview">All sessions</a>'
    heading = text(line.about["title"] or f"Session {line.key}")
    title = f'<h1>{heading}</h1><div class="dim">{text(line.about["project"])}<br>{text(_labels(line))}</div>'
    return (
        f'<section class="session" id="{place}"><header>{back}{title}{_span(line, zone)}</header>\n{_facts(line)}'
        f'<div class="card">{cards}<h3>Transcript</h3>{transcript(events, f"{place}t", zone)}</div></section>\n'
    )


def _events(paths: list[str], session: str) -> Iterator[Event]:
    keys: set[tuple[str, str, str]] = set()
    for path in paths:
        for event in read_events(path):
            key = (event.kind, event.identity, event.text)
            if event.session == session and (not event.identity or key not in keys):
                keys.add(key)
                yield event


def _foot(logs: Logs, zone: tzinfo | None) -> str:
    lost = f"; {len(logs.lost):,} lines could not be read" if logs.lost else ""
    made = datetime.now(zone).strftime("%Y-%m-%d %H:%M")
    return f"<footer>{len(logs.files):,} files, {logs.size / 1e6:,.1f} MB{lost}. Made {made}.</footer>\n"
