"""Constants and an error that both sides of the bridge share. Every import would delay the first response."""

MAX_MESSAGE_SIZE: int = 10_485_760
"""Largest payload in bytes: enough for results with some megabytes, and a memory limit (the length could say 4 GB)."""

LENGTH_PREFIX_SIZE: int = 4
"""Size of the length before a payload, in bytes; unsigned and big-endian."""

SOCKET_PERMISSIONS: int = 0o600
"""Mode of socket and schema file: access for the owner only."""

# Socket and schema file have the same UUID between prefix and suffix.
SOCKET_FILE_PREFIX: str = "claudecode_ipc_"
SOCKET_FILE_SUFFIX: str = ".sock"
SCHEMA_FILE_PREFIX: str = "claudecode_ipc_schema_"
SCHEMA_FILE_SUFFIX: str = ".json"


class WindowsUnsupportedError(OSError):
    """The function needs Unix sockets or `flock`, and was called on Windows."""

    def __init__(self) -> None:
        super().__init__(
            "Tool calls across processes need Unix sockets, which Python does not have on Windows. "
            "Use transport='sdk', or run the program on Linux, on macOS or in WSL."
        )
