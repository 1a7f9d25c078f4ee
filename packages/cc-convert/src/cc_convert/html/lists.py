"""Tables and figures on a page: sessions, projects, and the facts about a line."""

from collections.abc import Iterable, Mapping
from datetime import datetime, tzinfo

from ..log_files.rows import LABELS
from ..report.lines import Line, spell_cost
from .texts import text
from .transcript import search_box


def facts_list(line: Line) -> str:
    """Return a line's figures."""
    hits = line.cache_hits
    facts = [
        (spell_cost(line.cost, line.unpriced), "cost" + (", not of all models" if line.unpriced else "")),
        (f"{line.requests:,}", "requests"),
        (f"{line.tokens:,}", "tokens"),
        (f"{line.amounts.output:,}", "output tokens"),
        ("" if hits is None else f"{hits:.1%}", "of the input from the cache"),
    ]
    if line.errors:
        facts.append((f"{line.errors:,}", "errors"))
    if line.unlogged_cost:
        facts.append((f"${line.unlogged_cost:,.2f}", "in no request, such as compactions"))
    items = "".join(f"<li><b>{value}</b>{name}</li>" for value, name in facts)
    return f'<ul class="facts">{items}</ul>\n'


def unpriced_note(models: Iterable[Line]) -> str:
    """Return the note on models without a price, which `*` beside a cost refers to; empty if there are none."""
    names = ", ".join(f"{text(line.key)} ({line.unpriced:,} tokens)" for line in models if line.unpriced)
    return f'<p class="dim">* without models that have no price: {names}</p>\n' if names else ""


def project_table(projects: Iterable[Line]) -> str:
    """Return the costs by project."""
    rows = "".join(
        f'<tr><td class="where">{_folder(line.key)}</td><td class="n">{line.requests:,}</td>'
        f'<td class="n wide">{line.amounts.output:,}</td>'
        f'<td class="n">{spell_cost(line.cost, line.unpriced)}</td></tr>\n'
        for line in projects
    )
    head = '<th>Project</th><th class="n">Requests</th><th class="n wide">Output</th><th class="n">Cost</th>'
    return (
        '<section class="card"><h2>Cost by project</h2><div class="scroll"><table class="projects">'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div></section>\n"
    )


def session_table(sessions: Iterable[Line], links: Mapping[str, str], zone: tzinfo | None, note: str = "") -> str:
    """Return the sessions, with links to those that have one; `note` follows the table."""
    rows = "".join(_session_row(line, links.get(line.key), moment(line.last, zone)) for line in sessions)
    head = "<th>Last</th><th>Session</th><th>Project</th>"
    head += '<th class="n wide">Requests</th><th class="n wide">Output</th><th class="n">Cost</th>'
    return (
        f'<section class="card"><h2>Sessions</h2>{search_box("sessions", "Search sessions")}<div class="scroll">'
        f'<table><thead><tr>{head}</tr></thead><tbody id="sessions">{rows}</tbody></table></div>{note}</section>\n'
    )


def _session_row(line: Line, link: str | None, last_time: str) -> str:
    # A phone does not show wide columns.
    return (
        f'<tr data-entry><td>{last_time[:10]}<span class="wide">{last_time[10:]}</span></td>'
        f'<td class="id">{_name(line, link)}</td><td class="where">{_folder(line.about["project"])}</td>'
        f'<td class="n wide">{line.requests:,}</td><td class="n wide">{line.amounts.output:,}</td>'
        f'<td class="n">{spell_cost(line.cost, line.unpriced)}</td></tr>\n'
    )


def _name(line: Line, link: str | None) -> str:
    name = text(line.about["title"] or line.key)
    # The link is our own, never a log text.
    shown = f'<a href="{link}">{name}</a>' if link else name
    return f'{shown}<div class="dim">{text(labels_of(line))}</div>'


def _folder(path: str) -> str:
    """Return a folder; a phone shows only the last part, which is the distinctive one."""
    parent, slash, name = path.rstrip("/").rpartition("/")
    return f'<span class="wide">{text(parent + slash)}</span>{text(name)}' if name else text(path)


def labels_of(line: Line) -> str:
    """Return the line below a title: id, branch, machine, entry point, version."""
    facts = [line.key if line.about["title"] else "", *(line.about[name] for name in LABELS)]
    return " · ".join(fact for fact in facts if fact)


def span(line: Line, zone: tzinfo | None) -> str:
    """Return the time from a line's first request to the last."""
    return f'<div class="dim">{moment(line.first, zone)} to {moment(line.last, zone)}</div>' if line.first else ""


def moment(when: float, zone: tzinfo | None) -> str:
    """Return a time to the minute; empty if it is 0."""
    return datetime.fromtimestamp(when, zone).strftime("%Y-%m-%d %H:%M") if when else ""
