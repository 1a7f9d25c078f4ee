"""`cc-server`: the server for the shell, with arguments, token, socket, signals and printing."""

import argparse
import asyncio
import ipaddress
import json
import logging
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

from cc_messages import ClaudeCodeTransport
from cc_session import PoolLimits
from cc_session.internals import find_cli, login_advice
from cc_types import ClaudeCodeError

from .app import TOKEN_VARIABLE, create_app, new_token
from .connections import serve_until_signal
from .usage_database import is_url

_MEGABYTE = 1024 * 1024
# The answer takes a fifth of a second.
_LOGIN_SECONDS = 10.0

# Two threads with event loops answer each request. With Python's 5 ms, 30 at once take 7 % longer.
_SWITCH_SECONDS = 0.0003

_DESCRIPTION = """\
Serve the Anthropic Messages API, answered by Claude Code with its login or with ANTHROPIC_API_KEY, until Ctrl-C.

Clients need the address as ANTHROPIC_BASE_URL and the token as ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN; both are
printed in that form. The first Ctrl-C or SIGTERM lets running answers end, a second one does not. Defaults are in
brackets.
"""
_EPILOG = f"""\
The token comes from --token-file, or from the environment variable {TOKEN_VARIABLE}, or is a new one each time, which
is printed once. It is not taken on the command line, which every user of the machine can read. With --clients each
client has a token and limits of its own; the file is read again when it has changed.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until a signal; return the exit code: 0, 1 if the server cannot start, 2 if the arguments are wrong."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=options.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if options.access_log:
        logging.getLogger("cc_server.access").setLevel(logging.INFO)
    try:
        return _serve(options)
    except (ValueError, ClaudeCodeError) as error:
        sys.stderr.write(f"cc-server: {error}\n")
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cc-server", description=_DESCRIPTION, epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument_group("where").add_argument
    add("--host", default="127.0.0.1", metavar="H", help="address to listen on (127.0.0.1)")
    add("--port", type=_port, default=8400, metavar="N", help="0 takes a free one (8400)")
    add("--token-file", type=Path, metavar="FILE", help="file with the token that clients must send")
    add("--clients", type=Path, metavar="FILE", help="TOML file with several clients, in place of the one token")
    add("--usage-store", type=_store, metavar="FILE", help="their usage: a file, or postgresql://… (beside the file)")
    add = parser.add_argument_group("limits").add_argument
    add("--size", type=int, default=8, metavar="N", help="processes at most (8)")
    add("--prewarm", type=int, default=0, metavar="N", help="processes that are kept ready (0)")
    add("--idle-seconds", type=float, default=300.0, metavar="S", help="life of an unused process (300)")
    add("--max-requests", type=int, default=64, metavar="N", help="requests in progress (64)")
    add("--max-body-mb", type=int, default=32, metavar="N", help="size of a request (32)")
    add("--grace-seconds", type=int, default=30, metavar="S", help="for running answers at the end (30)")
    add = parser.add_argument_group("Claude Code").add_argument
    add("--cli-path", type=Path, metavar="FILE", help="the CLI to run (that of the SDK)")
    add("--cwd", type=Path, metavar="DIR", help="where its own tools work (an empty private folder)")
    levels = ("debug", "info", "warning", "error")
    add("--log-level", choices=levels, default="warning", help="what is logged to stderr (warning)")
    add("--access-log", action="store_true", help="log a line for each request, as with --log-level info")
    return parser


def _port(text: str) -> int:
    if not (text.isdecimal() and len(text) < 6 and int(text) < 1 << 16):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 65535")
    return int(text)


def _store(text: str) -> str:
    # Anything between the scheme and the last @, and a field of the query: an invalid URL may have one, too.
    if is_url(text) and (":" in text.partition("://")[2].rpartition("@")[0] or "password=" in text):
        raise argparse.ArgumentTypeError("every user of the machine can read a password here: put it into ~/.pgpass")
    return text


def _serve(options: argparse.Namespace) -> int:
    token = _token(options)
    transport = ClaudeCodeTransport(
        pool=PoolLimits(size=options.size, prewarm=options.prewarm, idle_seconds=options.idle_seconds),
        cwd=options.cwd,
        cli_path=options.cli_path,
    )
    app = create_app(
        transport,
        token=token or (new_token() if options.clients is None else None),
        clients=options.clients,
        usage_store=options.usage_store,
        max_requests=options.max_requests,
        max_body_bytes=options.max_body_mb * _MEGABYTE,
    )

    async def run(listener: socket.socket) -> None:
        async with transport:
            await serve_until_signal(app, listener, grace_seconds=options.grace_seconds)

    with _listen(options.host, options.port) as listener:
        _check_no_circle(listener)
        # Any other login is in the environment, or in the file with the clients.
        if transport.uses_subscription and not app.state.needs_logins:
            _check_login(find_cli(options.cli_path and str(options.cli_path)))
        _announce(listener, app.state.token if token is None else None)
        sys.setswitchinterval(_SWITCH_SECONDS)
        asyncio.run(run(listener))
    return 0


def _token(options: argparse.Namespace) -> str | None:
    """Return the token that the user has set, if any."""
    in_environment = os.environ.pop(TOKEN_VARIABLE, None)  # Claude Code processes would inherit it
    file: Path | None = options.token_file
    if options.clients is not None:
        if file is not None:
            raise ValueError("give either --token-file or --clients, not both")
        return None
    if file is None:
        return in_environment or None
    try:
        if os.name == "posix" and file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            sys.stderr.write(f"cc-server: warning: other users have access to {file}; chmod 600 takes it away\n")
        token = file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"the token cannot be read: {error}") from error
    if not token:
        raise ValueError(f"there is no token in {file}")
    return token


def _listen(host: str, port: int) -> socket.socket:
    if not _is_loopback(host):
        sys.stderr.write(
            f"cc-server: warning: {host} can be reached from other machines, and nothing is encrypted: a listener "
            "on the network gets the token, and with it your login to Claude Code\n"
        )
    try:
        # With the family and protocol named: asyncio turns Nagle's algorithm off only for sockets that declare TCP, and
        # with it every answer takes 40 ms longer.
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP, flags=socket.AI_PASSIVE
        )[0]
        with ExitStack() as on_failure:
            listener = on_failure.enter_context(socket.socket(family, kind, protocol))
            if os.name == "posix":
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            # From here on clients can connect: they wait until they are served.
            listener.listen()
            on_failure.pop_all()
    except (OSError, OverflowError) as error:
        raise ValueError(f"cannot listen on {host}, port {port}: {error}") from error
    return listener


def _check_no_circle(listener: socket.socket) -> None:
    """Refuse to send requests to this very server, as when the printed exports are set in the shell."""
    address = os.environ.get("ANTHROPIC_BASE_URL", "")
    try:
        target = urlsplit(address)
        is_circle = target.port == listener.getsockname()[1] and _is_loopback(target.hostname or "")
    except ValueError:
        return
    if is_circle:
        problem = f"ANTHROPIC_BASE_URL is {address}, which is this server itself: unset it, or take another port"
        raise ValueError(problem)


def _check_login(cli: str | None) -> None:
    """Warn if Claude Code has no login; do nothing if the CLI is missing or does not answer."""
    with suppress(OSError, ValueError, AttributeError, subprocess.TimeoutExpired):
        command = [cli or "", "auth", "status", "--json"]
        answer = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_LOGIN_SECONDS).stdout
        if json.loads(answer).get("loggedIn") is False:
            sys.stderr.write(f"cc-server: warning: Claude Code is not logged in. {login_advice()}\n")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _announce(listener: socket.socket, generated: str | None) -> None:
    host, port = listener.getsockname()[:2]
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    lines = [f"export ANTHROPIC_BASE_URL={address}"]
    if generated is not None:
        lines += [f"export ANTHROPIC_API_KEY={generated}", f"# What the server does: {address}/#{generated}"]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
