"""Error for a function that needs Unix sockets or `flock`, neither of which Python has on Windows."""

from __future__ import annotations


class WindowsUnsupportedError(OSError):
    """The function needs Unix sockets or `flock`, and was called on Windows."""

    def __init__(self) -> None:
        super().__init__(
            "Tool calls across processes need Unix sockets, which Python does not have on Windows. "
            "Use transport='sdk', or run the program on Linux, on macOS or in WSL."
        )
