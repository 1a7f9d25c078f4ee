"""Search in bytes: with the processor's vector instructions if stringzilla is installed, else with Python's own search.

Both give the same results; stringzilla needs at most a fifth of the time.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias, cast

__all__ = ["Find", "finders", "plain_finders"]

Find: TypeAlias = Callable[[bytes, int, int], int]
"""Returns a needle's position between two bounds, or -1."""


def plain_finders(data: bytearray) -> tuple[Find, Find]:
    """Return the functions that find a needle's first and last position."""
    return data.find, data.rfind


try:
    import stringzilla
except ImportError:
    finders = plain_finders
else:
    _vectors = cast("Any", stringzilla)

    def finders(data: bytearray) -> tuple[Find, Find]:
        """Return the functions that find a needle's first and last position."""
        return partial(_vectors.find, data), partial(_vectors.rfind, data)
