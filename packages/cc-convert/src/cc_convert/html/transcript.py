"""A session's transcript on the page."""

from collections.abc import Sequence
from datetime import datetime, tzinfo

from ..log_files.events import KIND_NAMES, Event
from .safe import shortened, text

__all__ = ["search_box", "transcript"]

# Characters. Whole files make a page slow to open; the log has the full text.
_MOST_CHARACTERS = 20_000
_OPEN = ("prompt", "text", "error", "compaction")


def transcript(events: Sequence[Event], place: str, zone: tzinfo | None) -> str:
    """Return the entries, with a search box where scripts are allowed."""
    entries = "".join(_entry(event, zone) for event in events)
    return f'{search_box(place, "Search this transcript")}<div id="{place}">{entries}</div>\n'


def search_box(place: str, hint: str) -> str:
    """Return a box that searches a place's entries; shown only where scripts are allowed."""
    return f'<p class="search"><input type="search" data-in="{place}" placeholder="{hint}" aria-label="{hint}"></p>'


def _entry(event: Event, zone: tzinfo | None) -> str:
    kinds = [event.kind, *(["failed"] if event.failed else []), *(["sub"] if event.agent else [])]
    head = f"{KIND_NAMES[event.kind]}{' (failed)' if event.failed else ''}"
    facts = [event.name, f"sub-agent {event.agent}" if event.agent else "", _when(event.time, zone)]
    who = text(" · ".join([head, *(fact for fact in facts if fact)]))
    if event.kind == "compaction":
        body = f"{event.tokens:,} tokens were replaced by a summary."
    else:
        body = shortened(event.text, _MOST_CHARACTERS)
    if event.kind in _OPEN:
        inner = f'<div class="who">{who}</div><pre>{body}</pre>'
    else:
        inner = f"<details><summary>{who}</summary><pre>{body}</pre></details>"
    return f'<div class="event {" ".join(kinds)}" data-entry>{inner}</div>\n'


def _when(time: float | None, zone: tzinfo | None) -> str:
    return datetime.fromtimestamp(time, zone).strftime("%Y-%m-%d %H:%M:%S") if time is not None else ""
