"""What the command line said. The demo's lowest layer: it imports nothing of the demo."""

from argparse import Namespace

__all__ = ["Options"]


class Options(Namespace):
    """The options, with the values they have when they are not given."""

    prompt: str | None = None
    model: str | None = None
    offline: bool = False
    login: bool = False
    debug: bool = False
