"""The command `python -m cc_ipc serve module:object`: offer functions to any MCP host until interrupted."""

import argparse
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from operator import attrgetter
from typing import cast

from .errors import IPCError
from .functions import Function
from .serving import serve


def find_functions(target: str) -> dict[str, Function]:
    """Return the functions in `module:object`, which is a function, an iterable or a mapping by name.

    Raises:
        ValueError: `target` is malformed, does not exist, or has another type. The message says which.
    """
    module_name, _, path = target.partition(":")
    if not module_name or not path:
        raise ValueError(f"{target!r} is not of the form module:object: give for example shop:functions")
    try:
        value: object = attrgetter(path)(import_module(module_name))
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{target!r} cannot be found: {error}") from error
    functions: dict[object, object]
    if isinstance(value, Mapping):
        functions = dict(cast("Mapping[object, object]", value))
    elif callable(value):
        functions = {getattr(value, "__name__", None): value}
    elif isinstance(value, Iterable):
        functions = {getattr(function, "__name__", None): function for function in cast("Iterable[object]", value)}
    else:
        raise ValueError(f"{target!r} is a {type(value).__name__}, not a function, a mapping or a list of functions")
    for name, function in functions.items():
        if not isinstance(name, str) or not callable(function):
            raise ValueError(f"{target!r} contains {name!r}: {function!r}, which is not a name and a function")
    return cast("dict[str, Function]", functions)


def main(arguments: Sequence[str]) -> int:
    """Run the command and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m cc_ipc", description="Offer Python functions to any MCP host.")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("serve", help="offer functions until interrupted")
    command.add_argument(
        "target", metavar="module:object", help="a function, a list, or a mapping of names to functions"
    )
    command.add_argument("--name", default="python", help="name of the server in the host (default: python)")
    options = parser.parse_args(arguments)
    try:
        server = serve(find_functions(options.target), name=options.name)
    except (ValueError, TypeError, OSError, IPCError) as error:
        sys.stderr.write(f"python -m cc_ipc: {error}\n")
        return 2
    # SIGTERM, too, must end the wait below, so that the files are removed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with server, suppress(KeyboardInterrupt):
        sys.stdout.flush()
        server.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
