"""`cc-convert responses`: convert stream-json to one `CLIResponse` per line, after each turn."""

import json
from argparse import Namespace
from collections.abc import Iterable
from typing import Any

from cc_types import CLIResponse, MessageParseError

from ..log_files.decode import decode_line
from ..log_files.sources import STDIN, find_logs, open_log
from ..log_files.streams import DamagedLogError, lines_of
from ..messages.response import convert_sdk_messages_to_cli_response
from .output import say


def run(options: Namespace) -> int:
    """Print a line for each result."""
    failed = False
    for path in find_logs(options.sources or [STDIN]):
        try:
            with open_log(path) as stream:
                failed |= _convert(lines_of(stream), path, text_only=options.text)
        except DamagedLogError as error:
            failed = True
            say(f"cc-convert: {path}: {error}")
    return int(failed)


def _convert(lines: Iterable[bytes], path: str, *, text_only: bool) -> bool:
    """Convert a stream; return true if it had a problem."""
    turn: list[dict[str, Any]] = []
    wrong, results = False, 0
    for number, line in enumerate(lines, start=1):
        decoded = decode_line(line)
        if decoded.lost:
            wrong = True
            say(f"cc-convert: {path}, line {number}: {decoded.problem}")
        for message in decoded.records:
            if message.get("type") in ("assistant", "result"):
                turn.append(message)
            if message.get("type") == "result":
                try:
                    _print(convert_sdk_messages_to_cli_response(turn), text_only=text_only)
                except MessageParseError as error:
                    wrong = True
                    say(f"cc-convert: {path}, line {number}: {error.reason}")
                turn, results = [], results + 1
    if not results:
        say(f"cc-convert: {path}: no result; the CLI stopped before a turn was over")
    elif turn:
        say(f"cc-convert: {path}: the last turn has no result")
    return wrong or not results or bool(turn)


def _print(response: CLIResponse, *, text_only: bool) -> None:
    line = response.result if text_only else json.dumps(response.model_dump(mode="json", exclude_unset=True))
    # Flush after the turn: a pipe's reader may wait for it.
    print(line, flush=True)  # noqa: T201 - the command output
