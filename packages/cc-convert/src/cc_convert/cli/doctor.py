"""`cc-convert doctor`: report the setup, unreadable lines, and gaps in the sums."""

from argparse import Namespace
from collections import Counter
from contextlib import suppress

from ..extras import EXTRAS, has_extra
from ..log_files.cache import Cache
from ..log_files.sources import STDIN, default_folders, open_log
from ..logs import Logs
from ..prices import Prices
from ..reconcile import reconcile
from .inputs import chosen_prices, load_logs
from .output import text_of

_SHOWN = 20


def run(options: Namespace) -> int:
    """Check everything; return 1 if something is wrong."""
    if options.clear_cache:
        Cache().clear()
        _tell("cache", "cleared")
    if not options.sources:
        _tell("places", ", ".join(default_folders()) or "none")
    logs, prices = load_logs(options, strict=True), chosen_prices(options)
    _tell("files", f"{len(logs.files):,} with {logs.size / 1e6:,.1f} MB")
    kinds = Counter(row.kind for row in logs.rows).most_common()
    _tell("rows", ", ".join(f"{number:,} {kind}" for kind, number in kinds) or "none")
    _tell("cache", Cache().folder)
    _tell("extras", ", ".join(f"{module} {'is' if has_extra(module) else 'not'} installed" for module in EXTRAS))
    return int(_problems(logs, show_all=options.all) | _doubts(logs, prices))


def _tell(what: str, text: str) -> None:
    print(f"{what:<12}{text}")  # noqa: T201 - the command output


def _problems(logs: Logs, *, show_all: bool) -> bool:
    lost_count = len(logs.lost)
    _tell("lines", f"{lost_count:,} cannot be read, {len(logs.problems) - lost_count:,} are damaged but were read")
    for path in logs.unfinished:
        _tell("unfinished", f"{path}: the last line is still being written")
    if not logs.problems:
        return False
    shown = logs.problems if show_all else logs.problems[:_SHOWN]
    lines = line_numbers([(problem.path, problem.offset) for problem in shown])
    table = [["File", "Line", "", "Reason"]]
    for problem, line in zip(shown, lines, strict=True):
        table.append([problem.path, str(line or ""), "lost" if problem.lost else "read", problem.reason])
    print(f"\n{text_of(table)}")  # noqa: T201 - the command output
    if len(shown) < len(logs.problems):
        _tell("", f"and {len(logs.problems) - len(shown):,} more; --all lists them")
    return True


def _doubts(logs: Logs, prices: Prices) -> bool:
    unpriced_models = Counter(row.model for row in logs.rows if prices.cost(row) is None)
    for model, number in unpriced_models.most_common():
        _tell("no price", f"{model[:80]!r}: {number:,} requests; add one with --prices FILE")
    partial = sum(not row.final for row in logs.rows)
    if partial:
        _tell("partial", f"{partial:,} requests of streams that ended without a result; their output is not known")
    differing = [comparison for comparison in reconcile(logs, prices) if not comparison.agrees or comparison.doubtful]
    text = f"{len(differing):,} sessions differ from the CLI's total, or may; see cc-convert reconcile"
    _tell("totals", text if differing else f"{len(logs.totals):,} sessions agree with the CLI's total")
    return bool(unpriced_models or differing)


def line_numbers(places: list[tuple[str, int]]) -> list[int | None]:
    """Return the line number, from 1, for each file and offset; `None` if unknown."""
    return [None if offset < 0 or path == STDIN else _line_number(path, offset) for path, offset in places]


def _line_number(path: str, offset: int) -> int | None:
    number, piece = 1, bytearray(1 << 20)
    with suppress(OSError), open_log(path) as stream:
        while offset > 0 and (came := stream.readinto(memoryview(piece)[: min(len(piece), offset)])):
            number += piece.count(b"\n", 0, came)
            offset -= came
        return number
    return None
