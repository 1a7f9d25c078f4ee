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

# Importing it patches the SDK's parser, before any session reads a message.
import cc_compat as _cc_compat

from ._fleet import PoolLimits
from ._ledger import Spent
from ._tool_names import is_known_tool
from .background import on_background, run_on_background, start_on_background, tell_background
from .cli_file import bundled_cli, find_cli, login_advice
from .command_hooks import CommandFailedError, command_hook
from .errors import (
    HooksDisabledError,
    McpServerFailedError,
    QueueTimeoutError,
    SessionBusyError,
    TurnTimeoutError,
    UnknownToolCallError,
)
from .frames import Content
from .hooks import Hook, HookResult, hook
from .launch import Launch, LeaseOverrides
from .login import CLOUD_VARIABLES, Login, api_address, login_of
from .matchers import EVENTS
from .mcp_servers import HTTPServer, McpServer, SSEServer, StdioServer
from .options import sealed_options
from .policy import Ask, Policy, Verdict
from .policy_presets import is_below
from .policy_rules import Rule
from .pool import SessionPool
from .pool_core import Lease, PoolCore
from .pool_owner import PoolOwner
from .pool_stats import PoolStats
from .query import query
from .session import Session, SessionState
from .stream import TurnStream
from .timeouts import Timeouts
from .tool_calls import TOOL_CALL_ID, TOOL_META, ToolCall, ToolContent, ToolDefinition, check_length, with_tool_server
from .turn import Turn
from .turn_errors import TurnError, TurnErrorKind
from .worker import PooledSession, ResetBy, Worker

_ = _cc_compat

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
