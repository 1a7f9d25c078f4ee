"""The numbers and names that both sides of the bridge agree on.

The lowest layer. It imports nothing: the bridge process loads it, and every import there delays the first answer.
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
"""Largest payload in bytes. Room for results of some megabytes, and a bound on memory: the length could say 4 GB."""

LENGTH_PREFIX_SIZE: int = 4
"""Bytes of the length in front of a payload, unsigned and big-endian."""

SOCKET_PERMISSIONS: int = 0o600
"""Mode of the socket and of the schema file: their owner's alone."""

SOCKET_FILE_PREFIX: str = "claudecode_ipc_"
"""Start of a socket's name; a UUID follows."""

SOCKET_FILE_SUFFIX: str = ".sock"
"""End of a socket's name."""

SCHEMA_FILE_PREFIX: str = "claudecode_ipc_schema_"
"""Start of a schema file's name; the UUID of its session follows."""

SCHEMA_FILE_SUFFIX: str = ".json"
"""End of a schema file's name."""
