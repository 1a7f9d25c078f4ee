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
from .hooks.hook import EVENTS, Hook, HookResult, hook
from .limits import PoolLimits, Timeouts
from .mcp.servers import HTTPServer, McpServer, SSEServer, StdioServer
from .policy.policy import Ask, Policy, Rule, Verdict
from .policy.questions import Question, Questions
from .policy.sandbox import Sandbox
from .pool.launch import LeaseOverrides
from .pool.pool import SessionPool, query
from .pool.stats import PoolStats
from .process.sealed import sealed_options
from .session.sent_message import Content, SessionState
from .session.session import Session
from .session.stream import TurnStream
from .session.turn import Spent, Turn, TurnError, TurnErrorKind

__all__ = [
    "EVENTS", "Ask", "CommandFailedError", "Content", "HTTPServer", "Hook", "HookResult", "HooksDisabledError",
    "LeaseOverrides", "McpServer", "McpServerFailedError", "Policy", "PoolLimits", "PoolStats", "Question",
    "Questions", "QueueTimeoutError", "Rule", "SSEServer", "Sandbox", "Session", "SessionBusyError", "SessionPool",
    "SessionState", "Spent", "StartFailedError", "StdioServer", "Timeouts", "Turn", "TurnError", "TurnErrorKind",
    "TurnStream", "TurnTimeoutError", "Verdict", "command_hook", "hook", "query", "sealed_options",
]  # fmt: skip
