"""The command `cc-convert`: parse the command line, run the command, return the exit code."""

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn, cast

from ..garbage import no_collections

if TYPE_CHECKING:
    from argparse import Namespace

__all__ = ["FINDINGS", "INTERRUPTED", "MISUSE", "OK", "main", "run"]

OK = 0
"""Done, without findings."""
FINDINGS = 1
"""Done, with findings: totals that differ, lines that cannot be read, a turn without a result."""
MISUSE = 2
"""Not done: an invalid command line, a missing file, a missing extra."""
INTERRUPTED = 130
"""Ended by Ctrl-C."""


def run() -> NoReturn:
    """Run this process's command line, and end the process."""
    _open_closed_streams()
    code = main()
    with suppress(OSError, ValueError):  # already reported
        sys.stdout.flush()
    # Freeing hundreds of thousands of rows takes as long as reading some megabytes.
    os._exit(code)


def _open_closed_streams() -> None:
    """Read nothing from a standard stream that was closed, and write to it without effect."""
    # In order: each takes the lowest free number, which is the closed stream's own.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line, by default `sys.argv[1:]`, and return the exit code."""
    from .parser import make_parser, parse

    # A letter missing in the terminal encoding must not stop the command.
    if reconfigure := cast("Callable[..., None] | None", getattr(sys.stdout, "reconfigure", None)):
        reconfigure(errors="replace")
    try:
        # A command ends soon, and is done a tenth earlier.
        with no_collections():
            return _run(parse(make_parser(), arguments))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return OK  # the reader closed the pipe


def _run(options: "Namespace") -> int:
    from ..extras import MissingExtraError
    from ..log_files.sources import LogsNotFoundError
    from ..prices import PriceFileError
    from ..report.filters import FilterError
    from .inputs import write_late
    from .output import RefusedError

    try:
        try:
            code: int = options.run(options)
            sys.stdout.flush()
        finally:
            write_late()
        return code
    except LogsNotFoundError as error:
        message = f"{error}{_hint(options)}"
    except (FilterError, MissingExtraError, PriceFileError, RefusedError) as error:
        message = str(error)
    except BrokenPipeError:
        raise
    except OSError as error:
        message = f"{error.filename}: " if error.filename else ""
        message += error.strerror or str(error)
    print(f"cc-convert: {message}", file=sys.stderr)  # noqa: T201 - this is where the command speaks
    return MISUSE


def _hint(options: "Namespace") -> str:
    """Return the kind of report, or the file, that a missing source probably means; empty if none is similar."""
    from .parser import BY, did_you_mean

    for word in (word for word in options.sources if not os.path.exists(os.path.expanduser(word))):
        folder = os.path.dirname(word)
        with suppress(OSError):
            paths = [os.path.join(folder, name) for name in os.listdir(os.path.expanduser(folder) or ".")]
            if hint := did_you_mean(word, [*(BY if options.command == "report" else ()), *paths]):
                return hint
    return ""
