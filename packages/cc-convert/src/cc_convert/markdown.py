"""Transcripts as Markdown."""

import re
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime
from typing import TextIO

from .log_files.events import KIND_NAMES, Event, read_events

__all__ = ["write_markdown"]


def write_markdown(
    file: TextIO, paths: Iterable[str], sessions: Collection[str], *, clean: Callable[[str], str] = str
) -> None:
    """Write the transcripts for sessions; `clean` is applied to their texts."""
    session = None
    for path in paths:
        for event in read_events(path):
            if event.session not in sessions:
                continue
            if event.session != session:
                session = event.session
                file.write(f"# Session {session}\n\n")
            file.write(_entry(event._replace(text=clean(event.text))))


def _entry(event: Event) -> str:
    when = datetime.fromtimestamp(event.time, UTC).strftime("%Y-%m-%d %H:%M:%S UTC") if event.time else ""
    facts = [fact for fact in (event.name, event.agent and f"sub-agent {event.agent}", when) if fact]
    title = KIND_NAMES[event.kind] + (" (failed)" if event.failed else "")
    head = f"## {title}{' · ' if facts else ''}{' · '.join(facts)}\n\n"
    if event.kind == "compaction":
        return f"{head}{event.tokens:,} tokens were replaced by a summary.\n\n"
    if event.kind in ("prompt", "text"):
        return f"{head}{event.text}\n\n"
    # Longer than any in the text, so that the text cannot close it.
    fence = max(["``", *re.findall("`+", event.text)], key=len) + "`"
    return f"{head}{fence}\n{event.text}\n{fence}\n\n"
