"""The command `python -m cc_loopback`: a server for the shell.

This module handles arguments, signals and output. It runs the server with its default responder.
"""

import argparse
import logging
import shlex
import signal
import sys
import time
from collections.abc import Sequence

from .server import LoopbackServer

_CLIENT_VARIABLES = ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY")
# Any duration works, because a signal ends the sleep.
_SLEEP_SECONDS = 3600.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM, and return the exit code."""
    options = _parser().parse_args(arguments)
    if options.verbose:
        _log_to_stderr()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        with LoopbackServer(port=options.port, event_delay=options.event_delay) as server:
            _print_environment(server, everything=options.print_env)
            while True:
                time.sleep(_SLEEP_SECONDS)
    except KeyboardInterrupt:
        return 0
    except OSError as error:
        sys.stderr.write(f"cc-loopback: cannot listen on port {options.port}: {error}\n")
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m cc_loopback",
        description="Serve the Anthropic Messages API on 127.0.0.1, with generated answers, until Ctrl-C. "
        "A shell can source the output to direct a client to the server.",
    )
    parser.add_argument("--port", type=int, default=0, metavar="N", help="port to listen on (default: a free one)")
    parser.add_argument(
        "--print-env",
        action="store_true",
        help="print all variables of a Claude Code CLI with a private config folder, not only those of an API client",
    )
    parser.add_argument(
        "--event-delay", type=float, default=0.0, metavar="S", help="seconds before each event of a stream (default: 0)"
    )
    parser.add_argument("--verbose", action="store_true", help="log one line per request to standard error")
    return parser


def _log_to_stderr() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger = logging.getLogger("cc_loopback")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)


def _print_environment(server: LoopbackServer, *, everything: bool) -> None:
    variables = server.env()
    names = variables if everything else _CLIENT_VARIABLES
    lines = [f"# cc-loopback listens on {server.url}"]
    lines += [f"export {name}={shlex.quote(variables[name])}" for name in names]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
