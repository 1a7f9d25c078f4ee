"""Conversations handed over between agents and the `claude` command, and a store for its sessions in SQLite.

`to_claude_code()` writes a history as a session that `claude --resume` opens, and `from_claude_code()` reads a session
as a history for an agent on any model.
"""

from .hand_over import ClaudeCodeSession, from_claude_code, to_claude_code
from .sqlite_store import SQLiteSessionStore
from .transcripts import HandOverError, SessionNotFoundError, restore_session

__all__ = [
    "ClaudeCodeSession", "HandOverError", "SQLiteSessionStore", "SessionNotFoundError", "from_claude_code",
    "restore_session", "to_claude_code",
]  # fmt: skip
