"""Work on the body of a request, in a thread if the body is long, so that other requests of the event loop go on."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

__all__ = ["run_on_body"]

T = TypeVar("T")

# Parsing takes some 10 ms for a megabyte, and up to ten times as long if it has very many values.
_LONG_BYTES = 100_000


async def run_on_body(function: Callable[[bytes], T], body: bytes) -> T:
    """Return the result of a pure function of a body."""
    return function(body) if len(body) < _LONG_BYTES else await asyncio.to_thread(function, body)
