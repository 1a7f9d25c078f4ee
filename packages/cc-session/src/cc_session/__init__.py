"""Warm Claude Code processes: one session, one conversation, one turn at a time.

Built on claude-agent-sdk. Knows processes, frames and events; does not know the Messages API, agents or models.
"""

from claude_agent_sdk import (
    McpServerStatus,
    NotificationHookInput,
    PermissionRequestHookInput,
    PermissionResultAllow,
    PermissionResultDeny,
    PostToolUseFailureHookInput,
    PostToolUseHookInput,
    PreCompactHookInput,
    PreToolUseHookInput,
    StopHookInput,
    SubagentStartHookInput,
    SubagentStopHookInput,
    ToolPermissionContext,
    UserPromptSubmitHookInput,
)

from .background import on_background, run_on_background, start_on_background, tell_background
from .errors import (
    HooksDisabledError,
    McpServerFailedError,
    QueueTimeoutError,
    SessionBusyError,
    TurnTimeoutError,
    UnknownToolCallError,
)
from .hooks.command import CommandFailedError, command_hook
from .hooks.hook import Hook, HookResult, hook
from .hooks.matchers import EVENTS
from .mcp.servers import HTTPServer, McpServer, SSEServer, StdioServer
from .mcp.tool_calls import (
    TOOL_CALL_ID,
    TOOL_META,
    ToolCall,
    ToolContent,
    ToolDefinition,
    check_length,
    with_tool_server,
)
from .policy.policy import Ask, Policy, Verdict
from .policy.rules import Rule, is_below, is_known_tool
from .pool.core import Lease, PoolCore
from .pool.launch import Launch, LeaseOverrides
from .pool.owner import PoolOwner
from .pool.pool import SessionPool, query
from .pool.processes import PoolLimits, ResetBy
from .pool.stats import PoolStats
from .pool.worker import PooledSession, Worker
from .process.cli_file import bundled_cli, find_cli, login_advice
from .process.frames import Content
from .process.login import CLOUD_VARIABLES, Login, api_address, login_of
from .process.options import sealed_options
from .session.session import Session, SessionState
from .session.spending import Spent
from .session.stream import TurnStream
from .session.turn import Turn
from .session.turn_errors import TurnError, TurnErrorKind
from .timeouts import Timeouts

__all__ = [
    "CLOUD_VARIABLES",
    "EVENTS",
    "TOOL_CALL_ID",
    "TOOL_META",
    "Ask",
    "CommandFailedError",
    "Content",
    "HTTPServer",
    "Hook",
    "HookResult",
    "HooksDisabledError",
    "Launch",
    "Lease",
    "LeaseOverrides",
    "Login",
    "McpServer",
    "McpServerFailedError",
    "McpServerStatus",
    "NotificationHookInput",
    "PermissionRequestHookInput",
    "PermissionResultAllow",
    "PermissionResultDeny",
    "Policy",
    "PoolCore",
    "PoolLimits",
    "PoolOwner",
    "PoolStats",
    "PooledSession",
    "PostToolUseFailureHookInput",
    "PostToolUseHookInput",
    "PreCompactHookInput",
    "PreToolUseHookInput",
    "QueueTimeoutError",
    "ResetBy",
    "Rule",
    "SSEServer",
    "Session",
    "SessionBusyError",
    "SessionPool",
    "SessionState",
    "Spent",
    "StdioServer",
    "StopHookInput",
    "SubagentStartHookInput",
    "SubagentStopHookInput",
    "Timeouts",
    "ToolCall",
    "ToolContent",
    "ToolDefinition",
    "ToolPermissionContext",
    "Turn",
    "TurnError",
    "TurnErrorKind",
    "TurnStream",
    "TurnTimeoutError",
    "UnknownToolCallError",
    "UserPromptSubmitHookInput",
    "Verdict",
    "Worker",
    "api_address",
    "bundled_cli",
    "check_length",
    "command_hook",
    "find_cli",
    "hook",
    "is_below",
    "is_known_tool",
    "login_advice",
    "login_of",
    "on_background",
    "query",
    "run_on_background",
    "sealed_options",
    "start_on_background",
    "tell_background",
    "with_tool_server",
]
