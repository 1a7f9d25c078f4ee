"""Constants that both sides of the bridge share. Nothing is imported, as every import delays the first response."""

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
