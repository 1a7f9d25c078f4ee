"""Error of a function that needs Unix sockets or `flock`, neither of which Python has on Windows.

The bridge process loads this module, so it imports nothing.
"""

from __future__ import annotations

__all__ = ["WindowsUnsupportedError"]


class WindowsUnsupportedError(OSError):
    """A function was called on Windows that needs Unix sockets or `flock`."""

    def __init__(self) -> None:
        super().__init__(
            "Tool calls across processes need Unix sockets, which Python does not have on Windows. "
            "Use transport='sdk', or run the program on Linux, on macOS or in WSL."
        )
