"""The report in HTML: the page with the charts, and transcripts, on further pages if a page would be too large."""

import os
import re
import shutil
import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, tzinfo
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self, TextIO
from urllib.parse import quote

from ..log_files.events import Event, read_events
from ..log_files.rows import Row
from ..log_files.titles import read_titles
from ..logs import Logs
from ..report.buckets import Bucket, fill_buckets
from ..report.lines import NO_TIME, Line, group, total
from .charts import block_chart, cost_chart, hit_chart, hour_chart, legend, model_classes, periods, share_chart
from .lists import facts_list, labels_of, project_table, session_table, span, unpriced_note
from .texts import text
from .timeline import context_chart, timeline_chart
from .transcript import entries, search_box

# Bytes. A page has at most the first size and a list of sessions; a session's parts have the second.
_PAGE, _PART = 3_000_000, 1_500_000
_ROW_BYTES = 450
_MOST_LISTED = 5000
_NAME = re.compile(r"\d+\.html")
_STYLE, _SCRIPT = (Path(__file__).with_name(name).read_text("utf-8") for name in ("page.css", "page.js"))


class PageFolder:
    """Folder `report-pages` for `report.html`, which only this user can read. It exists only if there are more pages.

    If the report fails, the pages of an earlier report stay. If there are such pages and no `force`, or other files
    beside them, `FileExistsError` is raised.
    """

    def __init__(self, path: str, *, force: bool) -> None:
        self.path: str = f"{os.path.splitext(path)[0]}-pages"
        self.folder_link: str = quote(os.path.basename(self.path))
        """The folder, as the first page links to it."""
        self.first_link: str = f"../{quote(os.path.basename(path))}"
        """The first page, as the others link to it."""
        self.count: int = 0
        """Number of pages."""
        self._temporary = f"{self.path}.{os.getpid()}"
        if os.path.lexists(self.path):
            if not force:
                raise FileExistsError(f"{self.path} exists; --force overwrites it")
            if not os.path.isdir(self.path) or not all(map(_NAME.fullmatch, os.listdir(self.path))):
                raise FileExistsError(
                    f"{self.path} has other files than a report's pages; move it, or use another name"
                )

    def open(self, number: int) -> TextIO:
        """Create a page, from number 2 on."""
        if not self.count:
            os.mkdir(self._temporary, 0o700)
        self.count += 1
        path = os.path.join(self._temporary, f"{number}.html")
        return open(path, "x", encoding="utf-8", newline="", opener=partial(os.open, mode=0o600))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            return
        if os.path.isdir(self.path):
            shutil.rmtree(self.path)
        if self.count:
            os.rename(self._temporary, self.path)


class _Part(NamedTuple):
    """A session transcript, or a part of a long one."""

    place: str
    """Its id on the page."""
    head: str
    body: str


def write_html(
    file: TextIO,
    rows: list[Row],
    logs: Logs,
    *,
    zone: tzinfo | None = None,
    transcripts: bool = True,
    more: PageFolder | None = None,
    redact: Callable[[str], str] = str,
) -> None:
    """Write the report on priced rows and their logs; with `transcripts`, read again from the logs.

    Without a place for `more` pages, there is a single page of any size. `redact` is applied to titles and transcripts.
    """
    buckets = fill_buckets(rows)
    sessions = [line for line in reversed(group(buckets, "session", zone)) if line.key != NO_TIME]
    # A page without transcripts has no text from the conversations.
    titles = read_titles(logs.files) if transcripts else {}
    for line in sessions:
        line.about["title"] = redact(titles.get(line.key, ""))
    book = _Book(more, min(len(sessions), _MOST_LISTED) * _ROW_BYTES, _foot(logs, zone), zone)
    if transcripts:
        for number, line in enumerate(sessions):
            book.add(line, list(_parts(line, f"s{number}", logs.places.get(line.key, []), zone, redact)))
    sections = book.end()
    file.write(f'{_head()}<main><div id="overview">\n{_overview(buckets, sessions, zone)}')
    listed, note = sessions[:_MOST_LISTED], ""
    if unlisted := len(sessions) - len(listed):
        note = f'<p class="dim">{unlisted:,} older sessions are on the last pages: {book.page_links()}</p>'
    file.write(session_table(listed, book.links, zone, note) + "</div>\n")
    file.writelines(sections)
    file.write(_end(_foot(logs, zone)))


class _Book:
    """Divides the transcripts among pages. A page is written when it is full; the first one stays in memory."""

    def __init__(self, more: PageFolder | None, list_size: int, foot: str, zone: tzinfo | None) -> None:
        self.links: dict[str, str] = {}
        """Links from the first page to the sessions."""
        self._more, self._foot, self._zone = more, foot, zone
        self._last_page, self._size = 1, list_size
        self._number, self._sections, self._lines = 1, list[str](), dict[str, tuple[Line, str]]()
        self._first_sections = self._sections

    def add(self, line: Line, parts: Sequence[_Part]) -> None:
        numbers = [self._reserve(len(part.body.encode())) for part in parts]
        self.links[line.key] = self._link(1, numbers[0], parts[0].place)
        for at, (part, number) in enumerate(zip(parts, numbers, strict=True)):
            if number != self._number:
                self._turn(number)
            self._lines.setdefault(line.key, (line, f"#{part.place}"))
            ways = f'<a href="{self._link(number, 1, "overview")}">All sessions</a>'
            for name, part_index in (("Part before", at - 1), ("Next part", at + 1)):
                if 0 <= part_index < len(parts):
                    ways += f' <a href="{self._link(number, numbers[part_index], parts[part_index].place)}">{name}</a>'
            section = f'<section class="session" id="{part.place}"><header>{ways}{part.head}</header>\n'
            self._sections.append(f"{section}{part.body}</section>\n")

    def end(self) -> list[str]:
        """Write the last page, and return the sections of the first one."""
        self._turn(self._number + 1)
        return self._first_sections

    def page_links(self) -> str:
        """Return links from the first page to the others."""
        return " ".join(
            f'<a href="{self._link(1, page, "overview")}">{page}</a>' for page in range(2, self._last_page + 1)
        )

    def _reserve(self, size: int) -> int:
        """Return the number of the page that has room."""
        if self._more and self._size and self._size + size > _PAGE:
            self._last_page, self._size = self._last_page + 1, 0
        self._size += size
        return self._last_page

    def _turn(self, number: int) -> None:
        """Write the current page, unless it is the first one, and begin another one."""
        if self._more and self._number > 1:
            lines = [line for line, _ in self._lines.values()]
            links = {key: link for key, (_, link) in self._lines.items()}
            with self._more.open(self._number) as file:
                file.write(f'{_head()}<main><div id="overview"><header>')
                file.write(f'<a href="{self._link(2, 1, "overview")}">All sessions</a>')
                file.write(f"<h1>Claude Code usage, page {self._number:,}</h1></header>\n")
                file.write(session_table(lines, links, self._zone) + "</div>\n")
                file.writelines(self._sections)
                file.write(_end(self._foot))
        self._number, self._sections, self._lines = number, [], {}

    def _link(self, page: int, target: int, place: str) -> str:
        """Return the link from a page to a place on another one, or on the same."""
        if page == target or self._more is None:
            return f"#{place}"
        if target == 1:
            return f"{self._more.first_link}#{place}"
        return f"{self._more.folder_link}/{target}.html#{place}" if page == 1 else f"{target}.html#{place}"


def _parts(
    line: Line, place: str, paths: list[str], zone: tzinfo | None, redact: Callable[[str], str]
) -> Iterator[_Part]:
    """Yield a session transcript, in parts that fit a page."""
    events = sorted(_events(paths, line.key), key=lambda event: event.time or 0.0)
    charts = {"Timeline": timeline_chart(events, zone), "Context": context_chart(events)}
    top = f'{facts_list(line)}<div class="card">'
    top += "".join(f"<h3>{title}</h3>{chart}" for title, chart in charts.items() if chart)
    facts = f'<div class="dim">{text(line.about["project"])}<br>{text(labels_of(line))}</div>{span(line, zone)}'
    for number, transcript in enumerate(_pieces(entries(events, zone, redact)), start=1):
        part_id, more = (place, "") if number == 1 else (f"{place}p{number}", f", part {number}")
        heading = f"<h1>{text(line.about['title'] or f'Session {line.key}')}{more}</h1>"
        box = search_box(f"{part_id}t", "Search this transcript")
        body = f'{top}<h3>Transcript</h3>{box}<div id="{part_id}t">{transcript}</div></div>'
        yield _Part(part_id, heading + facts, body)
        top = '<div class="card">'


def _pieces(texts: Iterable[str]) -> Iterator[str]:
    """Join texts to pieces that fit a page; yield at least one."""
    piece, size = list[str](), 0
    for entry in texts:
        if size + len(entry) > _PART and piece:
            yield "".join(piece)
            piece, size = [], 0
        piece.append(entry)
        size += len(entry.encode())
    yield "".join(piece)


def _events(paths: list[str], session: str) -> Iterator[Event]:
    keys: set[tuple[str, str, str]] = set()
    for path in paths:
        for event in read_events(path):
            key = (event.kind, event.identity, event.text)
            if event.session == session and (not event.identity or key not in keys):
                keys.add(key)
                yield event


def _head() -> str:
    """Return a page's head; its policy allows no loading, and only our own style and script, by their hashes."""
    style, script = (b64encode(sha256(content.encode()).digest()).decode() for content in (_STYLE, _SCRIPT))
    policy = (
        f"default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; base-uri 'none'; "
        "form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{text(policy)}">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>Claude Code usage</title>\n<style>{_STYLE}</style></head><body>\n"
    )


def _end(foot: str) -> str:
    return f"</main>\n{foot}<script>{_SCRIPT}</script></body></html>\n"


def _overview(buckets: list[Bucket], sessions: list[Line], zone: tzinfo | None) -> str:
    models, projects = group(buckets, "model", zone), group(buckets, "project", zone)
    total_line, classes = total(models), model_classes(buckets)
    name, lines = periods(buckets, zone)
    where = {
        "project": share_chart("project", projects, _last_part, classes),
        "session": share_chart("session", sessions, lambda line: line.about["title"] or line.key, classes),
    }
    charts = {
        "Where the cost went": "".join(f"<h3>By {kind}</h3>{chart}" for kind, chart in where.items() if chart),
        f"Cost per {name}": cost_chart(name, lines, classes) + legend(classes),
        "Input from the cache": hit_chart(name, lines),
        "Hours of the week": hour_chart(buckets, zone),
        "Five-hour blocks": block_chart(buckets, zone, time.time()),
    }
    cards = "".join(
        f'<section class="card"><h2>{title}</h2>{chart}</section>\n' for title, chart in charts.items() if chart
    )
    return (
        f"<header><h1>Claude Code usage</h1>{span(total_line, zone)}</header>\n{facts_list(total_line)}"
        f"{unpriced_note(models)}{cards}{project_table(projects[:_MOST_LISTED])}"
    )


def _last_part(project: Line) -> str:
    return project.key.rstrip("/").rpartition("/")[2] or project.key


def _foot(logs: Logs, zone: tzinfo | None) -> str:
    lost_note = f"; {len(logs.lost):,} lines could not be read" if logs.lost else ""
    made = datetime.now(zone).strftime("%Y-%m-%d %H:%M")
    return f"<footer>{len(logs.files):,} files, {logs.size / 1e6:,.1f} MB{lost_note}. Made {made}.</footer>\n"
