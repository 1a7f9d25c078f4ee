"""Constants that both sides of the bridge share.

This is the lowest layer. It imports nothing: the bridge process loads it, and every import delays its first response.
"""

__all__ = [
    "LENGTH_PREFIX_SIZE",
    "MAX_MESSAGE_SIZE",
    "SCHEMA_FILE_PREFIX",
    "SCHEMA_FILE_SUFFIX",
    "SOCKET_FILE_PREFIX",
    "SOCKET_FILE_SUFFIX",
    "SOCKET_PERMISSIONS",
]

MAX_MESSAGE_SIZE: int = 10_485_760
"""Largest payload in bytes: enough for results of some megabytes, and a memory limit (the length could say 4 GB)."""

LENGTH_PREFIX_SIZE: int = 4
"""Size in bytes of the length before a payload, unsigned and big-endian."""

SOCKET_PERMISSIONS: int = 0o600
"""Mode of the socket and of the schema file: access for their owner only."""

SOCKET_FILE_PREFIX: str = "claudecode_ipc_"
"""Start of a socket's name; a UUID follows."""

SOCKET_FILE_SUFFIX: str = ".sock"
"""End of a socket's name."""

SCHEMA_FILE_PREFIX: str = "claudecode_ipc_schema_"
"""Start of a schema file's name; the UUID of its session follows."""

SCHEMA_FILE_SUFFIX: str = ".json"
"""End of a schema file's name."""
