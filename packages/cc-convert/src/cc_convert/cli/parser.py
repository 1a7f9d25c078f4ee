"""The command line parser. Each command names its function, imported when it runs."""

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any, NoReturn, TypeAlias

BY = (
    "day", "week", "month", "session", "model", "project", "folder", "agent", "branch", "host", "entrypoint", "version",
    "block", "tool",
)  # fmt: skip
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_TABLES = ("table", "json", "csv", "md")

_Add: TypeAlias = Callable[[str, str], "CommandParser"]
_Options: TypeAlias = argparse._ActionsContainer  # pyright: ignore[reportPrivateUsage]

_BY_HELP = f"meaning of a line ({', '.join(BY)}; default: day)"
_SOURCES_HELP = "files, folders, patterns, or - for standard input (default: Claude Code's own transcripts)"
_OUTPUT_HELP = "write to a file (default: standard output)"
_ZONE_HELP = "time zone for days, such as Europe/Berlin (default: this machine's)"
_EXAMPLES = """\
examples:
  cc-convert report                             what each day cost
  cc-convert report session --last 7d           the sessions of the last seven days
  cc-convert report model runs/*.jsonl.gz       files of any kind, packed or not
  cc-convert report day --format json | jq .total.cost
  cc-convert search "flaky test" --last 2w      where that was said, and how to go on with it
  cc-convert convert -o archive.jsonl           keep what the CLI will delete
  cc-convert convert -o report.html             one page with charts and transcripts
  claude -p "Hi" --output-format stream-json --verbose | cc-convert responses -

exit codes: 0 done, 1 done with findings, 2 not done, 130 interrupted
"""


_UNKNOWN = re.compile(r"invalid choice: '([^']+)'|unrecognized arguments: (-\S+)")


class CommandParser(argparse.ArgumentParser):
    """Names the word that was probably meant, below an error, and formats help as wide as the terminal."""

    commands: Mapping[str, "CommandParser"] = {}

    def __init__(self, **settings: Any) -> None:
        # Without a width, argparse imports `shutil` for each option.
        super().__init__(
            formatter_class=partial(argparse.RawDescriptionHelpFormatter, width=_columns() - 2), **settings
        )

    def error(self, message: str) -> NoReturn:
        """Print the usage and the error, and exit."""
        hint = ""
        if match := _UNKNOWN.search(message):
            # A command's unknown options are an error of the whole parser.
            parsers = (self, *self.commands.values()) if match[2] else (self,)
            choices = [pair for parser in parsers for pair in parser.choices()]
            words = [word for options, values in choices for word in (options if match[2] else values)]
            unknown_word = match[1] or match[2]
            hint = "" if unknown_word in words else did_you_mean(unknown_word, words)  # another command has it
        super().error(f"{message}{hint}")

    def choices(self) -> Iterator[tuple[Sequence[str], list[str]]]:
        """Yield the forms of each option with the words that it takes; for words without an option, no forms."""
        for action in self._actions:
            yield action.option_strings, [*map(str, action.choices or ())]


def did_you_mean(word: str, words: Iterable[str], key: Callable[[str], str] = str) -> str:
    """Return the question for the word whose `key` is most similar; empty if none is similar."""
    from difflib import get_close_matches  # slow to import

    words_by_key = {key(candidate): candidate for candidate in words}
    match = get_close_matches(word, words_by_key, 1)
    return f"; did you mean {words_by_key[match[0]]}?" if match else ""


def _columns() -> int:
    with suppress(OSError, ValueError):
        return int(os.environ.get("COLUMNS") or os.get_terminal_size(sys.stdout.fileno()).columns) or 80
    return 80


def make_parser() -> CommandParser:
    """Return the parser for the whole command."""
    parser = CommandParser(
        prog="cc-convert",
        description="Logs of Claude Code and the Agent SDK: read, summed up, converted.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    # Without `prog`, argparse formats a usage to find it.
    commands = parser.add_subparsers(title="commands", prog=parser.prog, required=True, metavar="COMMAND")
    parser.commands = commands.choices
    add = partial(_command, commands.add_parser)
    _add_report(add)
    _add_conversions(add)
    _add_live(add)
    _add_questions(add)
    shell = add("completion", "print a script that completes this command in a shell")
    shell.add_argument("shell", choices=("bash", "zsh", "fish"))
    return parser


def parse(parser: CommandParser, words: Sequence[str] | None) -> argparse.Namespace:
    """Parse a command line. Sources may come before, between and after the options."""
    options, more = parser.parse_known_args(words)
    unknown_words = [word for word in more if word.startswith("-") and word != "-"]
    if unknown_words or (more and not hasattr(options, "sources")):
        parser.error(f"unrecognized arguments: {' '.join(unknown_words or more)}")
    if more:
        options.sources = [*options.sources, *more]
    if options.command == "report":
        options.by, options.sources = _by_and_sources(parser, options.sources)
    options.hosts = {path: host for host, path in options.origins}
    if options.hosts:
        options.sources = [*options.sources, *options.hosts]
    return options


def _by_and_sources(parser: CommandParser, words: list[str]) -> tuple[str, list[str]]:
    """Return the kind of report, usually the first word, and the sources; after a source, the word names a file."""
    at = [place for place, word in enumerate(words) if word in BY and (not place or not os.path.exists(word))]
    if len(at) > 1:
        parser.error(f"choose one of {', '.join(words[place] for place in at)}; write ./{words[at[1]]} for a file")
    return (words[at[0]], words[: at[0]] + words[at[0] + 1 :]) if at else ("day", words)


def _number_from(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isdecimal() or len(text) > 9 or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number of {least} or more")
        return int(text)

    return number


def _seconds(text: str) -> float:
    if not re.fullmatch(r"\d{1,6}(\.\d*)?|\.\d+", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return float(text)


def _origin(text: str) -> tuple[str, str]:
    """Parse HOST:PATH; the path must exist on this machine."""
    host, _, path = text.partition(":")
    if not host or not path or "/" in host:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PATH, such as laptop:backup/laptop/projects")
    from ..log_files.sources import LogsNotFoundError, find_logs

    try:
        find_logs([path])
    except LogsNotFoundError as error:
        hint = f"copy the logs to this machine first, such as with: rsync -a {host}:.claude/projects/ FOLDER"
        raise argparse.ArgumentTypeError(f"{error}; {hint}") from None
    return host, path


def _alert(text: str) -> object:
    from ..report.alerts import COSTS, WINDOWS, AlertError, parse_alert

    try:
        return parse_alert(text)
    except AlertError as error:
        hint = did_you_mean(re.split(r"\W", text.strip())[0], [*WINDOWS, *COSTS])
        raise argparse.ArgumentTypeError(f"{error}{hint}") from None


class _Version(argparse.Action):
    """Looks up the version only on demand: this takes longer than a short report."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        parser.exit(message=f"cc-convert {import_module('importlib.metadata').version('cc-convert')}\n")


def _command(add: Callable[..., CommandParser], name: str, help: str) -> CommandParser:
    command = add(name, help=help, description=f"{help[0].upper()}{help[1:]}.")

    def run(options: argparse.Namespace) -> int:
        return import_module(f".{name}", __package__).run(options)

    command.set_defaults(run=run, command=name, origins=[], dask=None, strict=False, no_cache=False, jobs=None)
    return command


def _add_report(add: _Add) -> None:
    report = add("report", "sum up tokens and cost")
    _add_sources(report, "BY|PATH", f"{_BY_HELP}, then {_SOURCES_HELP}")
    _add_filters(report)
    _add_prices(report)
    form = report.add_argument_group("form")
    form.add_argument("--format", choices=(*_TABLES, "html"), default="table")
    _add_output(form)
    _add_alerts(form, "exit with 1 if a cost is above a limit: 'day>$20', 'project:*/shop>$5'; may be repeated")
    form.add_argument("--week-start", choices=WEEKDAYS, default="monday", metavar="DAY", help="default: monday")
    _add_reading(report)
    report.add_argument("--dask", metavar="ADDRESS", help="read on a Dask cluster; sources may be URLs")


def _add_conversions(add: _Add) -> None:
    convert = add("convert", "write requests or transcripts to a file")
    _add_sources(convert)
    _add_output(convert, "the ending tells the form; - is standard output", default="-")
    convert.add_argument("--format", choices=("jsonl", "csv", "parquet", "html", "md"), help="in place of the ending")
    redacted = "replace secrets and the folders of paths, and leave hosts out"
    convert.add_argument("--redact", action="store_true", help=redacted)
    _add_filters(convert)
    _add_prices(convert)
    _add_reading(convert)

    responses = add("responses", "turn stream-json into one CLIResponse per line")
    responses.add_argument("sources", nargs="*", metavar="PATH", help="files, or - (default)")
    responses.add_argument("--text", action="store_true", help="print the final texts alone")

    compare = add("reconcile", "compare requests with the CLI's own totals")
    _add_sources(compare)
    _add_prices(compare, cost=False)
    compare.add_argument("--all", action="store_true", help="show the sessions that agree, too")
    compare.add_argument("--format", choices=_TABLES, default="table")
    _add_reading(compare)


def _add_live(add: _Add) -> None:
    watch = add("watch", "show today and the current block, and keep them up to date")
    _add_sources(watch)
    watch.add_argument(
        "--interval", type=_seconds, default=2.0, metavar="SECONDS", help="between refreshes (default: 2)"
    )
    watch.add_argument("--once", action="store_true", help="show once")
    watch.add_argument("--tz", metavar="ZONE", help=_ZONE_HELP)
    _add_alerts(watch, "tell when a window or a cost of today is above a limit: '5h>80%%', 'day>$20'; may be repeated")
    watch.add_argument(
        "--json", action="store_true", help="print only a JSON line for each value that passes its limit"
    )
    _add_prices(watch)

    line = add("statusline", "print the line for Claude Code's status line, from its JSON on stdin")
    line.add_argument("--tz", metavar="ZONE", help=argparse.SUPPRESS)
    _add_prices(line)


def _add_questions(add: _Add) -> None:
    doctor = add("doctor", "read every line and report defects")
    _add_sources(doctor)
    doctor.add_argument("--all", action="store_true", help="list every defect, not only the first ones")
    doctor.add_argument("--clear-cache", action="store_true", help="clear the cache first")
    _add_prices(doctor, cost=False)
    doctor.add_argument("--jobs", type=_number_from(1), metavar="N", help=argparse.SUPPRESS)

    sql = add("sql", "ask the table `requests` in SQL")
    sql.add_argument("query", help="such as: select model, sum(cost) from requests group by model")
    _add_sources(sql)
    sql.add_argument("--engine", choices=("sqlite", "duckdb"), default="sqlite", help="default: sqlite")
    sql.add_argument("--format", choices=_TABLES, default="table")
    _add_prices(sql)
    _add_reading(sql)

    search = add("search", "find a text in prompts, answers and tool calls, and the session it is in")
    text = "text to search for, ignoring case; put -- before a text that begins with -"
    search.add_argument("text", metavar="TEXT", help=text)
    _add_sources(search)
    search.add_argument("-E", "--regex", action="store_true", help="TEXT is a regular expression, as Python has them")
    search.add_argument(
        "--role", action="append", choices=("prompt", "answer", "thinking", "call", "result", "error", "title"),
        help="look only there; may be repeated (default: everywhere)",
    )  # fmt: skip
    around = "show N lines before and behind (default: 0)"
    search.add_argument("-C", "--context", type=_number_from(0), default=0, metavar="N", help=around)
    newest = "show the newest N matches; 0 shows all (default: 30)"
    search.add_argument("--limit", type=_number_from(0), default=30, metavar="N", help=newest)
    search.add_argument("--format", choices=("text", "json"), default="text")
    _add_output(search)
    _add_filters(search)
    _add_reading(search, strict=False)


def _add_sources(parser: _Options, metavar: str = "PATH", help: str = _SOURCES_HELP) -> None:
    # Without a default, Python 3.11 names it among the missing arguments.
    parser.add_argument("sources", nargs="*", default=[], metavar=metavar, help=help)
    parser.add_argument(
        "--from", dest="origins", metavar="HOST:PATH", type=_origin, action="append", default=[],
        help="logs that were copied from another machine, with its name; may be repeated",
    )  # fmt: skip


def _add_output(parser: _Options, help: str = _OUTPUT_HELP, default: str | None = None) -> None:
    parser.add_argument("-o", "--output", metavar="FILE", default=default, help=help)
    parser.add_argument(
        "--force", action="store_true", help="overwrite an existing file, also an archive, which otherwise is added to"
    )


def _add_alerts(parser: _Options, help: str) -> None:
    parser.add_argument("--alert", dest="alerts", metavar="ALERT", type=_alert, action="append", default=[], help=help)


def _add_filters(parser: argparse.ArgumentParser) -> None:
    filters = parser.add_argument_group("filters")
    filters.add_argument("--since", metavar="DAY", help="from this day, or time, on: 2026-11-20, 2026-11-20T14:00")
    filters.add_argument("--until", metavar="DAY", help="up to the end of this day, or before this time")
    filters.add_argument("--last", metavar="SPAN", help="the last days, weeks or hours, today among them: 7d, 2w, 36h")
    filters.add_argument("--tz", metavar="ZONE", help=_ZONE_HELP)
    filters.add_argument("--project", default="", metavar="PART", help="projects with this in their folder")
    filters.add_argument("--model", default="", metavar="PART", help="models with this in their name")
    filters.add_argument("--session", default="", metavar="ID", help="sessions whose id begins so")
    filters.add_argument("--branch", default="", metavar="NAME", help="a git branch; * stands for any characters")
    filters.add_argument("--host", default="", metavar="NAME", help="a machine, as --from names it")
    filters.add_argument("--entrypoint", default="", metavar="NAME", help="how it was started, such as cli or sdk-py")
    filters.add_argument("--cli-version", default="", metavar="VERSION", help="such as 2.1.329, or 2.1.*")


def _add_prices(parser: argparse.ArgumentParser, *, cost: bool = True) -> None:
    prices = parser.add_argument_group("prices")
    if cost:
        prices.add_argument(
            "--cost", choices=("auto", "calculate", "logged"), default="auto",
            help="calculate: by the price list; logged: the CLI's own figures; auto: logged where a request has one",
        )  # fmt: skip
    prices.add_argument("--prices", metavar="FILE", help="prices in JSON, added to the built-in list")
    prices.add_argument("--only-prices", action="store_true", help="with --prices: the file replaces the built-in list")


def _add_reading(parser: argparse.ArgumentParser, *, strict: bool = True) -> None:
    reading = parser.add_argument_group("reading")
    reading.add_argument("--no-cache", action="store_true", help="read all lines again, and store nothing")
    jobs = "processes (default: one for each processor)"
    reading.add_argument("--jobs", type=_number_from(1), metavar="N", help=jobs)
    if strict:
        reading.add_argument("--strict", action="store_true", help="decode every line, also those that count nothing")
