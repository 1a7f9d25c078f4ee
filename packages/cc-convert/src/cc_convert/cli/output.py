"""Write tables for people, and records for programs."""

import io
import json
import os
import sys
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, tzinfo
from functools import partial
from typing import Any, TextIO, TypeAlias

from ..extras import has_extra, need
from ..log_files.private_files import open_private

Table: TypeAlias = Sequence[Sequence[str]]
"""Rows with cells; the first row has the headings."""


class RefusedError(ValueError):
    """Raised for output that would destroy a file or is impossible."""


def say(text: str) -> None:
    """Print a message on stderr."""
    print(visible(text), file=sys.stderr)  # noqa: T201 - this is where the command speaks


@contextmanager
def write_output(path: str | None, *, force: bool) -> Generator[TextIO]:
    """Open a text file that only this user can read, or the standard output.

    An error leaves an existing file as it was. Without `force`, an existing file raises `RefusedError`.
    """
    if path in (None, "-"):
        yield sys.stdout
        return
    check_free(path, force=force)
    target, as_device = os.path.realpath(path), is_device(path)
    written = target if as_device else f"{target}.{os.getpid()}"
    try:
        opener = partial(os.open, mode=0o600) if as_device else open_private
        file = open(written, "w", encoding="utf-8", newline="", opener=opener)
    except OSError as error:
        # The user knows the file by its own name.
        folder = os.path.dirname(path)
        if folder and not os.path.isdir(folder):
            raise RefusedError(f"{path}: there is no folder {folder}; create it first") from None
        raise OSError(error.errno, error.strerror, path) from None
    try:
        with file:
            yield file
        if not as_device:
            os.replace(written, target)
    except BaseException:
        if not as_device:
            os.unlink(written)
        raise


def is_device(path: str) -> bool:
    """Return true if a path is neither a file nor a new one."""
    return os.path.exists(path) and not os.path.isfile(path)


def check_free(path: str, *, force: bool) -> None:
    """Raise `RefusedError` if a file exists that must not be overwritten."""
    if not force and os.path.isfile(path):
        raise RefusedError(f"{path} exists; --force overwrites it")


def write_records(
    file: TextIO, records: Sequence[Mapping[str, Any]], form: str, headings: Iterable[str] | None = None
) -> None:
    """Write records as `json` (one document), `csv`, or `md`; without `headings`, the records' names."""
    if form == "json":
        file.write(json.dumps(list(records), indent=1, default=str) + "\n")
        return
    headings = list(dict.fromkeys(name for record in records for name in record) if headings is None else headings)
    if form == "csv":
        import csv  # slow to import, and tables are more frequent

        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(headings)
        writer.writerows([_plain(record.get(name)) for name in headings] for record in records)
    else:
        write_table(file, [headings, *([_text(record.get(name)) for name in headings] for record in records)], form)


def _plain(value: object) -> object:
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return f"'{value}"  # a log text must not be a formula in a spreadsheet
    return json.dumps(value) if isinstance(value, dict | list | tuple) else value


def _text(value: object) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def write_table(
    file: TextIO, table: Table, form: str = "table", *, has_total: bool = False, drops: Sequence[str] = ()
) -> None:
    """Write a table: on a terminal with rich, if it is installed, otherwise in plain columns.

    `form` is `table` or `md`. With `has_total`, the last row is a sum. Columns under the headings in `drops` are
    left out, in this order and named below the table, until a terminal is wide enough.
    """
    visible_table = [[visible(cell) for cell in row] for row in table]
    if form == "md":
        _write_markdown(file, visible_table)
        return
    on_terminal = file is sys.stdout and file.isatty()
    visible_table, dropped = fit_table(visible_table, drops, terminal_size().columns if on_terminal else None)
    if on_terminal and has_extra("rich") and not is_too_wide(file, visible_table):
        # Rich truncates cells that do not fit; a truncated number would be a wrong number.
        _write_rich(visible_table, has_total=has_total)
    else:
        _write_plain(file, visible_table, has_total=has_total)
    if dropped:
        from textwrap import fill

        file.write(fill(f"Not shown, for lack of room: {', '.join(dropped)}", terminal_size().columns) + "\n")


def fit_table(table: Table, drops: Iterable[str], columns: int | None) -> tuple[Table, list[str]]:
    """Return a table that is at most `columns` wide, if given, and the headings of the columns that were left out."""
    dropped: list[str] = []
    for heading in drops:
        if columns is None or sum(_widths(table)) + 2 * (len(table[0]) - 1) <= columns:
            break
        if heading in table[0]:
            table = _without(table, list(table[0]).index(heading))
            dropped.append(heading)
    return table, dropped


def _without(table: Table, at: int) -> list[list[str]]:
    return [[*row[:at], *row[at + 1 :]] for row in table]


def _columns(table: Table) -> Iterable[Sequence[str]]:
    return zip(*table, strict=True)


def _widths(table: Table) -> list[int]:
    return [max(map(_width, column)) for column in _columns(table)]


def _width(cell: str) -> int:
    """Return the columns that a text takes in a terminal: Chinese and Japanese characters take two."""
    if cell.isascii():
        return len(cell)
    from unicodedata import combining, east_asian_width

    return sum((not combining(character)) + (east_asian_width(character) in "WF") for character in cell)


def visible(cell: str) -> str:
    """Replace control characters: a log could otherwise move a terminal's cursor or change its colours."""
    return cell if cell.isprintable() else "".join(character if character.isprintable() else "�" for character in cell)


def _write_markdown(file: TextIO, table: Table) -> None:
    line = "".join(" --- |" if is_text else " ---: |" for is_text in _texts(table))
    for number, row in enumerate(table):
        cells = [cell.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;") for cell in row]
        file.write(f"| {' | '.join(cells)} |\n" + (f"|{line}\n" if number == 0 else ""))


def _texts(table: Table) -> list[bool]:
    """Return true for each column with texts, which are aligned to the left; the others have numbers."""
    numbers = [
        any(cell[:1].isdigit() or cell[:1] in "$-+" for cell in column[1:] if cell) for column in _columns(table)
    ]
    return [at == 0 or not has_numbers for at, has_numbers in enumerate(numbers)]


def _write_plain(file: TextIO, table: Table, *, has_total: bool) -> None:
    widths, texts = _widths(table), _texts(table)
    for number, row in enumerate(table):
        if number == 1 or (has_total and number == len(table) - 1 > 1):
            file.write("  ".join("-" * width for width in widths) + "\n")
        cells = [
            cell + " " * (width - _width(cell)) if is_text else " " * (width - _width(cell)) + cell
            for cell, width, is_text in zip(row, widths, texts, strict=True)
        ]
        file.write("  ".join(cells).rstrip() + "\n")


def _write_rich(table: Table, *, has_total: bool) -> None:
    names = ("table", "box", "text", "console")
    tables, box, text, console = (need(f"rich.{name}", "A coloured table") for name in names)
    shown = tables.Table(box=box.SIMPLE_HEAD, show_footer=has_total)
    foot = table[-1] if has_total else [""] * len(table[0])
    for at, (heading, cell, is_text) in enumerate(zip(table[0], foot, _texts(table), strict=True)):
        shown.add_column(
            heading, justify="left" if is_text else "right", footer=text.Text(cell, style="bold"),
            no_wrap=at == 0 or not is_text, overflow="fold",
        )  # fmt: skip
    for row in table[1 : len(table) - has_total]:
        shown.add_row(*map(text.Text, row))
    # Use the width that was checked before, not rich's own measurement.
    columns, lines = terminal_size()
    console.Console(width=columns, height=lines).print(shown)


def terminal_size() -> os.terminal_size:
    """Return the terminal size."""
    import shutil  # slow to import, and only tables need it

    return shutil.get_terminal_size()


def spell_short(number: int) -> str:
    """Format a count in little room: three or four digits, and a letter."""
    for size, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= 10 * size:
            return f"{number / size:.0f}{letter}"
        if number >= size:
            return f"{number / size:.1f}{letter}"
    return str(number)


def iso_time(time: float, zone: tzinfo | None) -> str | None:
    """Format a time for programs, to the second; `None` if it is 0."""
    return datetime.fromtimestamp(time, zone).astimezone(zone).isoformat(timespec="seconds") if time else None


def shortened(text: str, most: int) -> str:
    """Return a text with at most `most` characters, with an ellipsis if it was cut."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}\N{HORIZONTAL ELLIPSIS}"


def is_too_wide(file: TextIO, table: Table) -> bool:
    """Return true if the table goes to a terminal that is too narrow for it with rich, which needs a margin."""
    widths = _widths(table)
    return file is sys.stdout and file.isatty() and sum(widths) + 3 * len(widths) + 1 > terminal_size().columns


def without_empty(table: list[list[str]], *headings: str) -> list[list[str]]:
    """Return the table without the columns under these headings that are empty."""
    for heading in headings:
        at = table[0].index(heading)
        if not any(row[at] for row in table[1:]):
            table = _without(table, at)
    return table


def text_of(table: Table) -> str:
    """Return a table as plain text."""
    file = io.StringIO()
    write_table(file, table)
    return file.getvalue()
