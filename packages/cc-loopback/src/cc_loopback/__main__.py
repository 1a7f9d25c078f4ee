"""The command `cc-loopback`, or `python -m cc_loopback`: a server for the shell.

The server answers with the default responder, or from a cassette.
"""

import argparse
import logging
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import get_args

from .api.errors import CassetteError, first_error_text
from .recording.tape import Cassette, RecordMode
from .server import LoopbackServer

_CLIENT_VARIABLES = ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY")
# Any duration works, because a signal ends the sleep.
_SLEEP_SECONDS = 3600.0
# A shell's exit codes for a command that cannot be started, and for a command that a signal ended.
_NOT_STARTED, _SIGNALLED = 127, 128
_LAST_PORT = 65535


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM, or until the command after `--` ends, and return the exit code."""
    ours, command = _split(sys.argv[1:] if arguments is None else arguments)
    parser = _parser()
    options = parser.parse_args(ours)
    if command and not options.action:
        parser.error("a command after -- needs `record` or `replay`")
    if options.verbose:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        logger = logging.getLogger("cc_loopback")
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        cassette = None
        if options.action:
            cassette = Cassette(options.cassette, options.mode, dict(options.scrub), options.timing)
        server = LoopbackServer(port=options.port, event_delay=options.event_delay, cassette=cassette)
        try:
            server.start()
        except OSError as error:
            raise OSError(f"cannot listen on port {options.port}: {error}") from error
        try:
            if command:
                return _run(command, server)
            _print_environment(server, everything=options.print_env)
            while True:
                time.sleep(_SLEEP_SECONDS)
        finally:
            server.stop()
    except KeyboardInterrupt:
        return _SIGNALLED + signal.SIGINT if command else 0
    except (CassetteError, OSError) as error:
        sys.stderr.write(f"cc-loopback: {error}\n")
        return 1


def _port(text: str) -> int:
    if not text.isdecimal() or len(text) > 5 or int(text) > _LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to {_LAST_PORT}")
    return int(text)


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the arguments before and after the first `--`."""
    at = [*arguments, "--"].index("--")
    return [*arguments[:at]], [*arguments[at + 1 :]]


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--port", type=_port, default=0, metavar="N", help="port to listen on (default: a free one)")
    common.add_argument(
        "--print-env",
        action="store_true",
        help="print all variables of a Claude Code CLI with a private config folder, not only those of an API client",
    )
    common.add_argument("--verbose", action="store_true", help="log one line per request to standard error")
    parser = argparse.ArgumentParser(
        prog="cc-loopback",
        parents=[common],
        description="Serve the Anthropic Messages API on 127.0.0.1, with generated answers, until Ctrl-C. "
        "A shell can source the output to direct a client to the server.",
        epilog="`record` and `replay` take a command after --, which uses the server and ends it: "
        "cc-loopback record agent.json -- python agent.py",
    )
    parser.add_argument(
        "--event-delay", type=float, default=0.0, metavar="S", help="seconds before each event of a stream (default: 0)"
    )
    parser.set_defaults(mode="none", timing=False)
    _add_actions(parser, common)
    return parser


def _add_actions(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    common = argparse.ArgumentParser(parents=[common], add_help=False)
    common.add_argument("cassette", metavar="CASSETTE", help="JSON file of recorded requests and answers")
    common.add_argument(
        "--scrub",
        nargs=2,
        action="append",
        default=[],
        metavar=("PATTERN", "REPLACEMENT"),
        help="replace a regular expression in each text of requests and answers; repeatable",
    )
    actions = parser.add_subparsers(dest="action", metavar="{record,replay}")
    record = actions.add_parser(
        "record",
        parents=[common],
        help="pass requests on to the API of ANTHROPIC_BASE_URL, or the public one, and write its answers to a file",
    )
    record.add_argument(
        "--mode",
        choices=[mode for mode in get_args(RecordMode) if mode != "none"],
        default="rewrite",
        help="once (only if there is no file), new_episodes (only requests that are not in the file), all (each "
        "request again), rewrite (a new file, default)",
    )
    replay = actions.add_parser("replay", parents=[common], help="answer from a file")
    replay.add_argument("--timing", action="store_true", help="take as long as the recorded answers did")


def _run(command: Sequence[str], server: LoopbackServer) -> int:
    """Run a command that uses the server, and return the exit code: the command's, or 1 after errors of the server."""
    try:
        status = subprocess.run(command, env={**os.environ, **server.env()}, check=False).returncode
    except OSError as error:
        sys.stderr.write(f"cc-loopback: cannot start {command[0]}: {error.strerror}\n")
        return _NOT_STARTED
    if server.errors:
        sys.stderr.write(f"cc-loopback: {first_error_text(server.errors)}\n")
    if not server.calls:
        sys.stderr.write(f"cc-loopback: {command[0]} sent no request\n")
    return (_SIGNALLED - status if status < 0 else status) or bool(server.errors)


def _print_environment(server: LoopbackServer, *, everything: bool) -> None:
    variables = server.env()
    names = [name for name in variables if everything or name in _CLIENT_VARIABLES]
    lines = [f"# cc-loopback listens on {server.url}"]
    lines += [f"export {name}={shlex.quote(variables[name])}" for name in names]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
