"""Fixtures of these tests: `warm_clients.fixtures`."""

from contextlib import suppress

with suppress(ImportError):  # the README's examples are tried without the workspace
    from warm_clients.fixtures import *  # noqa: F403
