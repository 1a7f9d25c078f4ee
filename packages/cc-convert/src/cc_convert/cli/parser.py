"""The words of the command line. Each command names its function, which is imported when it runs."""

import argparse
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

__all__ = ["BY", "make_parser"]

BY = ("day", "week", "month", "session", "model", "project", "block", "tool")
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

_EXAMPLES = """\
examples:
  cc-convert report                             what each day cost
  cc-convert report session --last 7d           the sessions of the last seven days
  cc-convert report model runs/*.jsonl.gz       files of any kind, packed or not
  cc-convert report day --format json | jq .total.cost
  cc-convert convert -o archive.jsonl           keep what the CLI will delete
  cc-convert convert -o report.html             one page with charts and transcripts
  claude -p "Hi" --output-format stream-json --verbose | cc-convert responses -

exit codes: 0 done, 1 done with findings, 2 not done, 130 interrupted
"""


def make_parser() -> argparse.ArgumentParser:
    """The parser of the whole command."""
    parser = argparse.ArgumentParser(
        prog="cc-convert",
        description="Logs of Claude Code and the Agent SDK: read, summed up, converted.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"cc-convert {_version()}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_report(commands)
    _add_convert(commands)
    _add_responses(commands)
    _add_reconcile(commands)
    _add_live(commands)
    _add_doctor(commands)
    _add_sql(commands)
    shell = _command(commands, "completion", "completion", "print a script that completes this command in a shell")
    shell.add_argument("shell", choices=("bash", "zsh", "fish"))
    return parser


def _version() -> str:
    try:
        return version("cc-convert")
    except PackageNotFoundError:
        return "of unknown version"


def _late(module: str) -> Callable[[argparse.Namespace], int]:
    def run(options: argparse.Namespace) -> int:
        return import_module(f".{module}", __package__).run(options)

    return run


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, module: str, help: str
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.")
    command.set_defaults(run=_late(module))
    return command


def _add_report(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    report = _command(commands, "report", "report", "sum up tokens and cost")
    report.add_argument("by", nargs="?", choices=BY, default="day", help="what a line stands for (default: day)")
    _add_sources(report)
    _add_filters(report)
    _add_prices(report)
    form = report.add_argument_group("form")
    form.add_argument("--format", choices=("table", "json", "csv", "md", "html"), default="table")
    form.add_argument("-o", "--output", metavar="FILE", help="write to a file (default: standard output)")
    form.add_argument("--force", action="store_true", help="write over a file that is there")
    form.add_argument("--week-start", choices=WEEKDAYS, default="monday", metavar="DAY", help="default: monday")
    _add_reading(report)
    report.add_argument("--dask", metavar="ADDRESS", help="read on a Dask cluster; sources may be URLs")


def _add_convert(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    convert = _command(commands, "convert", "convert", "write requests or transcripts to a file")
    _add_sources(convert)
    convert.add_argument(
        "-o", "--output", metavar="FILE", default="-", help="the ending tells the form; - is standard output"
    )
    convert.add_argument("--format", choices=("jsonl", "csv", "parquet", "html", "md"), help="in place of the ending")
    convert.add_argument("--force", action="store_true", help="write over a file that is there")
    _add_filters(convert)
    _add_prices(convert)
    _add_reading(convert)


def _add_responses(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    responses = _command(commands, "responses", "responses", "turn stream-json into one CLIResponse per line")
    responses.add_argument("sources", nargs="*", default=["-"], metavar="PATH", help="files, or - (default)")
    responses.add_argument("--text", action="store_true", help="print the final texts alone")


def _add_reconcile(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    compare = _command(commands, "reconcile", "reconcile", "set requests against the CLI's own totals")
    _add_sources(compare)
    compare.add_argument("--prices", metavar="FILE", help="a price list in JSON")
    compare.add_argument("--all", action="store_true", help="show the sessions that agree, too")
    compare.add_argument("--format", choices=("table", "json", "csv", "md"), default="table")
    _add_reading(compare)


def _add_live(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    watch = _command(commands, "watch", "watch", "show today and the current block, and keep them up to date")
    _add_sources(watch)
    watch.add_argument("--interval", type=float, default=2.0, metavar="SECONDS", help="between looks (default: 2)")
    watch.add_argument("--once", action="store_true", help="look once")
    watch.add_argument(
        "--tz", metavar="ZONE", help="whose days they are, such as Europe/Berlin (default: this machine's)"
    )
    _add_prices(watch)
    line = _command(
        commands, "statusline", "statusline", "print the line for Claude Code's status line, from its JSON on stdin"
    )
    line.add_argument("--tz", metavar="ZONE", help=argparse.SUPPRESS)
    _add_prices(line)


def _add_doctor(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    doctor = _command(commands, "doctor", "doctor", "read every line and say what is wrong")
    _add_sources(doctor)
    doctor.add_argument("--all", action="store_true", help="list every line that is wrong, not only the first ones")
    doctor.add_argument("--clear-cache", action="store_true", help="forget what was read before")
    doctor.add_argument("--prices", metavar="FILE", help="a price list in JSON")
    doctor.add_argument("--jobs", type=int, metavar="N", help=argparse.SUPPRESS)


def _add_sql(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    sql = _command(commands, "sql", "sql", "ask the table `requests` in SQL")
    sql.add_argument("query", help="such as: select model, sum(cost) from requests group by model")
    _add_sources(sql)
    sql.add_argument("--engine", choices=("sqlite", "duckdb"), default="sqlite", help="default: sqlite")
    sql.add_argument("--format", choices=("table", "json", "csv", "md"), default="table")
    _add_prices(sql)
    _add_reading(sql)


def _add_sources(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sources", nargs="*", metavar="PATH",
        help="files, folders, patterns, or - for standard input (default: Claude Code's own transcripts)",
    )  # fmt: skip


def _add_filters(parser: argparse.ArgumentParser) -> None:
    filters = parser.add_argument_group("filters")
    filters.add_argument("--since", metavar="DAY", help="from this day, or time, on: 2026-11-20, 2026-11-20T14:00")
    filters.add_argument("--until", metavar="DAY", help="up to the end of this day, or before this time")
    filters.add_argument("--last", metavar="SPAN", help="the last days, weeks or hours, today among them: 7d, 2w, 36h")
    filters.add_argument(
        "--tz", metavar="ZONE", help="whose days they are, such as Europe/Berlin (default: this machine's)"
    )
    filters.add_argument("--project", default="", metavar="PART", help="projects with this in their folder")
    filters.add_argument("--model", default="", metavar="PART", help="models with this in their name")
    filters.add_argument("--session", default="", metavar="ID", help="sessions whose id begins so")


def _add_prices(parser: argparse.ArgumentParser) -> None:
    prices = parser.add_argument_group("prices")
    prices.add_argument(
        "--cost", choices=("auto", "calculate", "logged"), default="auto",
        help="calculate: by the price list; logged: the CLI's own figures; auto: logged where a request has one",
    )  # fmt: skip
    prices.add_argument("--prices", metavar="FILE", help="a price list in JSON, in place of the built-in one")


def _add_reading(parser: argparse.ArgumentParser) -> None:
    reading = parser.add_argument_group("reading")
    reading.add_argument("--no-cache", action="store_true", help="read everything anew, and keep nothing")
    reading.add_argument("--jobs", type=int, metavar="N", help="processes (default: one for each processor)")
    reading.add_argument("--strict", action="store_true", help="decode every line; exit with 1 if one cannot be read")
