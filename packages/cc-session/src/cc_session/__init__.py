"""Warm Claude Code processes: one session, one conversation, one turn at a time.

Built on claude-agent-sdk. Knows processes, frames and events; does not know the Messages API, agents or models.
"""

from .errors import (
    HooksDisabledError,
    McpServerFailedError,
    QueueTimeoutError,
    SessionBusyError,
    StartFailedError,
    TurnTimeoutError,
)
from .hooks.command import CommandFailedError, command_hook
from .hooks.hook import Hook, HookResult, hook
from .hooks.matchers import EVENTS
from .mcp.servers import HTTPServer, McpServer, SSEServer, StdioServer
from .policy.policy import Ask, Policy, Verdict
from .policy.rules import Rule
from .pool.launch import LeaseOverrides
from .pool.limits import PoolLimits
from .pool.pool import SessionPool, query
from .pool.stats import PoolStats
from .process.frames import Content
from .process.options import sealed_options
from .session.session import Session, SessionState
from .session.spending import Spent
from .session.stream import TurnStream
from .session.turn import Turn
from .session.turn_errors import TurnError, TurnErrorKind
from .timeouts import Timeouts

__all__ = [
    "EVENTS", "Ask", "CommandFailedError", "Content", "HTTPServer", "Hook", "HookResult", "HooksDisabledError",
    "LeaseOverrides", "McpServer", "McpServerFailedError", "Policy", "PoolLimits", "PoolStats", "QueueTimeoutError",
    "Rule", "SSEServer", "Session", "SessionBusyError", "SessionPool", "SessionState", "Spent", "StartFailedError",
    "StdioServer", "Timeouts", "Turn", "TurnError", "TurnErrorKind", "TurnStream", "TurnTimeoutError", "Verdict",
    "command_hook", "hook", "query", "sealed_options",
]  # fmt: skip
