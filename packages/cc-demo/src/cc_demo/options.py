"""The options of the command line. The lowest layer of the demo: it imports nothing of the demo."""

import inspect
from argparse import Namespace

from cc_model import ClaudeCodeModel

__all__ = ["Options", "default_model"]


class Options(Namespace):
    """The options, with the values they have when they are not given."""

    prompt: str | None = None
    model: str | None = None
    offline: bool = False
    login: bool = False
    debug: bool = False


def default_model() -> str:
    """The model that `ClaudeCodeModel` takes when it is given none."""
    return inspect.signature(ClaudeCodeModel).parameters["model_name"].default
