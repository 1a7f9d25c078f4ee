"""`cc-convert convert`: write requests or transcripts to a file."""

import os
import tempfile
from argparse import Namespace

from ..log_files.archive import to_archive
from ..log_files.rows import Row
from ..table import COLUMNS, duckdb_with, record_of
from .inputs import load_rows, load_titles, mention, overview, with_costs
from .output import RefusedError, check_free, say, write_output, write_records

_ENDINGS = {".jsonl": "jsonl", ".csv": "csv", ".parquet": "parquet", ".html": "html", ".htm": "html", ".md": "md"}


def run(options: Namespace) -> int:
    """Write the file."""
    form = options.format or _form_of(options.output)
    if form == "html":
        return write_page(options, transcripts=True)
    if form == "md":
        return _write_transcripts(options)
    rows, logs = load_rows(options)
    if form == "parquet":
        _write_parquet(rows, options)
    else:
        # Read before the file is opened, which may be among the logs.
        titles = load_titles(options) if form == "jsonl" else {}
        with write_output(options.output, force=options.force) as file:
            if form == "csv":
                write_records(file, [record_of(row) for row in rows], "csv", COLUMNS)
            else:
                # A session's first row has its title.
                file.writelines(f"{to_archive(row, titles.pop(row.session, ''))}\n" for row in rows)
    if options.output != "-":
        say(f"{len(rows):,} rows written to {options.output}")
    return mention(overview(logs, with_costs(rows)))


def _form_of(output: str) -> str:
    if output == "-":
        return "jsonl"
    form = _ENDINGS.get(os.path.splitext(output)[1].lower())
    if form is None:
        raise RefusedError(f"no format has the ending of {output}; use {', '.join(_ENDINGS)} or --format")
    return form


def _write_parquet(rows: list[Row], options: Namespace) -> None:
    if options.output == "-":
        raise RefusedError("parquet needs a file: -o NAME.parquet")
    check_free(options.output, force=options.force)
    target = os.path.abspath(options.output)
    # DuckDB creates a file that all users may read, so it writes to a private folder.
    with (
        duckdb_with(rows, "Writing Parquet") as database,
        tempfile.TemporaryDirectory(dir=os.path.dirname(target)) as private,
    ):
        temporary = os.path.join(private, "rows.parquet")
        quoted = temporary.replace("'", "''")
        database.execute(f"copy requests to '{quoted}' (format parquet)")
        os.chmod(temporary, 0o600)
        os.replace(temporary, target)


def _write_transcripts(options: Namespace) -> int:
    from ..markdown import write_markdown

    rows, logs = load_rows(options)
    sessions = {row.session for row in rows}
    with write_output(options.output, force=options.force) as file:
        write_markdown(file, logs.files, sessions)
    return mention(overview(logs, with_costs(rows)))


def write_page(options: Namespace, *, transcripts: bool) -> int:
    """Write the page with charts, optionally with transcripts."""
    from ..html.page import write_html

    rows, logs = load_rows(options)
    from .inputs import chosen_zone

    with write_output(options.output, force=options.force) as file:
        write_html(file, rows, logs, zone=chosen_zone(options), transcripts=transcripts)
    if options.output not in (None, "-"):
        say(f"{len({row.session for row in rows}):,} sessions written to {options.output}")
    return mention(overview(logs, with_costs(rows)))
