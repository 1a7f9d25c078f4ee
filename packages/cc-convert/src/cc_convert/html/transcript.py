"""A session transcript on the page."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, tzinfo
from typing import cast

from ..log_files.events import Event, heading_of
from .texts import answer_html, shortened, text

# Characters. Whole files make a page slow to open; the log has the full text.
_MOST_CHARACTERS = 20_000
_MOST_SUMMARY = 120
_OPEN = ("prompt", "text", "error", "compaction")
# The fields that tell calls apart, the most telling first.
_TELLING = (
    "command", "file_path", "notebook_path", "path", "pattern", "query", "url", "description", "skill", "prompt",
)  # fmt: skip


def entries(events: Sequence[Event], zone: tzinfo | None, redact: Callable[[str], str]) -> Iterator[str]:
    """Yield the entries; `redact` is applied to the texts."""
    tools = {event.identity: event.name for event in events if event.kind == "call"}
    for event in events:
        name = tools.get(event.identity, "") if event.kind == "result" else event.name
        yield _entry(event._replace(name=name, text=redact(event.text)), zone, _summary(event, redact))


def search_box(place: str, hint: str) -> str:
    """Return a box that searches a place's entries; shown only where scripts are allowed."""
    return f'<p class="search"><input type="search" data-in="{place}" placeholder="{hint}" aria-label="{hint}"></p>'


def _entry(event: Event, zone: tzinfo | None, summary: str) -> str:
    kinds = f"{event.kind}{' failed' if event.failed else ''}{' sub' if event.agent else ''}"
    agent = f"sub-agent {event.agent}" if event.agent else ""
    when = "" if event.time is None else datetime.fromtimestamp(event.time, zone).strftime("%Y-%m-%d %H:%M:%S")
    code = f"<code>{text(summary)}</code>" if summary else ""
    name = heading_of(event)
    who = " · ".join(fact for fact in (name, text(event.name), code, text(agent), when) if fact)
    if event.kind == "text" and len(event.text) <= _MOST_CHARACTERS:
        body = answer_html(event.text)
    elif event.kind == "compaction":
        body = f"<pre>{event.tokens:,} tokens were replaced by a summary.</pre>"
    else:
        body = f"<pre>{shortened(event.text, _MOST_CHARACTERS)}</pre>"
    if event.kind in _OPEN:
        inner = f'<div class="who">{who}</div>{body}'
    else:
        inner = f"<details><summary>{who}</summary>{body}</details>"
    return f'<div class="event {kinds}" data-entry>{inner}</div>\n'


def _summary(event: Event, redact: Callable[[str], str]) -> str:
    """Return what a tool call is about, in one line; empty for other events."""
    value: object = event.input
    if event.kind != "call" or not isinstance(value, dict):
        return ""
    fields = cast("dict[str, object]", value)
    values = [fields.get(name) for name in _TELLING] + list(fields.values())
    value = next((value for value in values if isinstance(value, str) and value.strip()), "")
    # Cleaned first: a part of a secret is not recognised.
    line = " ".join(redact(value[:_MOST_CHARACTERS])[: 4 * _MOST_SUMMARY].split())
    return line if len(line) <= _MOST_SUMMARY else f"{line[: _MOST_SUMMARY - 1]}\N{HORIZONTAL ELLIPSIS}"
