"""`cc-demo`: an agent on Claude Code, to look at.

The outermost layer: options and exit codes. The demo itself is imported after the options are read, so that `--help`
and an error in an option come early.
"""

import argparse
import inspect
from collections.abc import Sequence
from importlib.metadata import version

from cc_model import ClaudeCodeModel

__all__ = ["main"]

_DESCRIPTION = """\
A small travel agent made with pydantic-ai, answered by Claude Code: typed dependencies, two tools of which one fails
once and is called again, a typed output, and two turns of one conversation, streamed. The end shows what each request
took, and how much of it was the start of the Claude Code process.
"""
_EPILOG = """\
It talks to Claude with ANTHROPIC_API_KEY if that is set, and else with the login of Claude Code if one is found.
Without either it runs offline: the real Claude Code process then talks to a scripted model on this machine.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo and return the exit code: 0, 1 after a failure, 2 for bad options, 130 and 143 after a signal."""
    options = _parser().parse_args(arguments)
    try:
        from .run import run

        return run(**vars(options))
    except KeyboardInterrupt:
        # Before and after the demo proper, which has handlers of its own, there is nothing to clean up.
        return 130


def _parser() -> argparse.ArgumentParser:
    model = inspect.signature(ClaudeCodeModel).parameters["model_name"].default
    models = "a model id, or an alias such as sonnet, opus or haiku (default: %(default)s)"
    parser = argparse.ArgumentParser(prog="cc-demo", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("--prompt", type=_text, metavar="TEXT", help="what to ask first (default: a trip to choose)")
    parser.add_argument("--model", type=_text, default=model, metavar="NAME", help=models)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--offline", action="store_true", help="use the scripted model, whatever login there is")
    where.add_argument(
        "--login", action="store_true", help="use the login of Claude Code, even if none is seen or an API key is set"
    )
    parser.add_argument("--debug", action="store_true", help="show the traceback of a failure")
    parser.add_argument("--version", action="version", version=f"cc-demo {version('cc-demo')}")
    return parser


def _text(value: str) -> str:
    if not value.strip():
        raise argparse.ArgumentTypeError("must not be empty")
    return value
