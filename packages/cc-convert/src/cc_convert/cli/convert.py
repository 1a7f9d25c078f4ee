"""`cc-convert convert`: write requests or transcripts to a file."""

import os
import re
from argparse import Namespace
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TextIO

from ..log_files.archive import ARCHIVED, to_archive
from ..log_files.events import Event, heading_of, read_events
from ..log_files.rows import Row
from ..log_files.sources import default_folders
from ..logs import Logs, read_logs
from ..redaction import Redaction
from ..table import COLUMNS, duckdb_with, values_of
from .inputs import chosen_prices, chosen_zone, load_rows, load_titles, mention, overview
from .output import RefusedError, check_free, is_device, say, write_output, write_records

_ARCHIVE = b'{"type":"%s"' % ARCHIVED.encode()
_ENDINGS = {".jsonl": "jsonl", ".csv": "csv", ".parquet": "parquet", ".html": "html", ".htm": "html", ".md": "md"}


def run(options: Namespace) -> int:
    """Write the file."""
    ending = os.path.splitext(options.output)[1].lower()
    form = options.format or ("jsonl" if options.output == "-" else _ENDINGS.get(ending))
    if form is None:
        raise RefusedError(f"no format has the ending of {options.output}; use {', '.join(_ENDINGS)} or --format")
    if form == "html":
        return write_page(options, transcripts=True)
    kept = _rows_to_keep(options) if form == "jsonl" else []
    if kept:
        # Read together, so that a request in both counts once.
        options.sources = [*(options.sources or default_folders()), options.output]
    rows, logs, redact = _load(options, kept)
    if form == "md":
        with write_output(options.output, force=options.force) as file:
            _write_markdown(file, logs.files, {row.session for row in rows}, redact)
    elif form == "parquet":
        _write_parquet(rows, options)
    else:
        # Read before the file is opened, which may be among the logs.
        titles = load_titles(options) if form == "jsonl" else {}
        with write_output(options.output, force=options.force or bool(kept)) as file:
            if form == "csv":
                records = [dict(zip(COLUMNS, values_of(row), strict=True)) for row in rows]
                write_records(file, records, "csv", COLUMNS)
            else:
                # A session's first row has its title.
                file.writelines(f"{to_archive(row, redact(titles.pop(row.session, '')))}\n" for row in rows)
    if options.output != "-" and form != "md":
        say(f"{len(rows):,} rows written to {options.output}")
    return mention(overview(logs, rows))


def _rows_to_keep(options: Namespace) -> list[Row]:
    """Return the rows of an archive that the output adds to; none for a new file, and with `--force`."""
    if options.force or options.output == "-" or not os.path.isfile(options.output):
        return []
    with open(options.output, "rb") as file:
        is_archive = file.read(len(_ARCHIVE)) == _ARCHIVE
    archive = read_logs(options.output) if is_archive else None
    if archive is None or archive.problems:
        raise RefusedError(f"{options.output} exists, and is no archive that can be added to; --force overwrites it")
    return archive.rows


def _load(options: Namespace, kept: Sequence[Row] = ()) -> tuple[list[Row], Logs, Callable[[str], str]]:
    """Return the rows and logs, and the function that redacts texts; it returns them as they are without `--redact`.

    Rows to keep are in the result whatever the filter.
    """
    rows, logs = load_rows(options)
    if kept:
        selected = {row.key for row in rows}
        identities = {_identity_of(row) for row in kept}
        rows = [
            row
            for row in logs.priced(chosen_prices(options), options.cost)
            if row.key in selected or _identity_of(row) in identities
        ]
    if not getattr(options, "redact", False):
        return rows, logs, str
    redact = Redaction({folder for row in rows for folder in (row.project, row.folder)})
    say("note: only common forms of secrets and paths are replaced; read the result before you give it away")
    texts = ("key", "uuid", "project", "folder", "branch", "agent_type")
    return [row._replace(host="", **{name: redact(getattr(row, name)) for name in texts}) for row in rows], logs, redact


def _identity_of(row: Row) -> tuple[str, ...]:
    # A key may change when more logs are read.
    ids = (row.message_id, row.request_id, row.uuid)
    return (row.kind, row.model, *ids) if any(ids) else (row.key,)


def _write_markdown(
    file: TextIO, paths: Iterable[str], sessions: Collection[str], redact: Callable[[str], str]
) -> None:
    """Write the transcripts for sessions; `redact` is applied to their texts."""
    session = None
    for path in paths:
        for event in read_events(path):
            if event.session not in sessions:
                continue
            if event.session != session:
                session = event.session
                file.write(f"# Session {session}\n\n")
            file.write(_markdown(event._replace(text=redact(event.text))))


def _markdown(event: Event) -> str:
    when = datetime.fromtimestamp(event.time, UTC).strftime("%Y-%m-%d %H:%M:%S UTC") if event.time else ""
    facts = [fact for fact in (event.name, event.agent and f"sub-agent {event.agent}", when) if fact]
    title = heading_of(event)
    head = f"## {title}{' · ' if facts else ''}{' · '.join(facts)}\n\n"
    if event.kind == "compaction":
        return f"{head}{event.tokens:,} tokens were replaced by a summary.\n\n"
    if event.kind in ("prompt", "attachment", "text"):
        return f"{head}{event.text}\n\n"
    # Longer than any in the text, so that the text cannot close it.
    fence = max(["``", *re.findall("`+", event.text)], key=len) + "`"
    return f"{head}{fence}\n{event.text}\n{fence}\n\n"


def _write_parquet(rows: list[Row], options: Namespace) -> None:
    if options.output == "-":
        raise RefusedError("parquet needs a file: -o NAME.parquet")
    with (
        duckdb_with(rows, "Writing Parquet") as database,
        write_output(options.output, force=options.force) as file,
    ):
        # DuckDB would create a file that all users may read, so it overwrites a private one.
        file.close()
        quoted = file.name.replace("'", "''")
        database.execute(f"copy requests to '{quoted}' (format parquet, use_tmp_file false)")


def write_page(options: Namespace, *, transcripts: bool) -> int:
    """Write the page with charts, optionally with transcripts, and the further pages that these need."""
    from ..html.page import PageFolder, write_html
    from ..html.texts import renders_markdown

    rows, logs, redact = _load(options)
    with ExitStack() as stack:
        more = None
        if transcripts and options.output not in (None, "-") and not is_device(options.output):
            check_free(options.output, force=options.force)
            more = stack.enter_context(PageFolder(options.output, force=options.force))
        file = stack.enter_context(write_output(options.output, force=options.force))
        write_html(file, rows, logs, zone=chosen_zone(options), transcripts=transcripts, more=more, redact=redact)
    if options.output not in (None, "-"):
        more_pages = f" and {more.count:,} more pages in {more.path}" if more and more.count else ""
        say(f"{len({row.session for row in rows}):,} sessions written to {options.output}{more_pages}")
    if transcripts and not renders_markdown():
        say('note: answers are shown as plain text; pip install "cc-convert[html]" renders their Markdown')
    return mention(overview(logs, rows))
