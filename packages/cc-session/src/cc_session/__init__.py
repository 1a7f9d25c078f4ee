"""Warm Claude Code processes: one session, one conversation, one turn at a time.

Built on claude-agent-sdk. Knows processes, frames and events; does not know the Messages API, agents or models.
"""

# Importing it patches the SDK's parser, before any session reads a message.
import cc_compat as _cc_compat

from ._launch import LeaseOverrides
from .background import on_background, run_on_background, start_on_background, tell_background
from .errors import SessionBusyError, TurnTimeoutError, UnknownToolCallError
from .frames import Content
from .options import has_api_key, sealed_options
from .pool import SessionPool
from .pool_stats import PoolStats
from .query import query
from .session import Session, SessionState
from .stream import TurnStream
from .timeouts import Timeouts
from .tool_calls import TOOL_CALL_ID, TOOL_META, ToolCall, ToolContent, ToolDefinition, check_length, with_tool_server
from .turn import Turn
from .turn_errors import TurnError, TurnErrorKind

_ = _cc_compat

__all__ = [
    "TOOL_CALL_ID",
    "TOOL_META",
    "Content",
    "LeaseOverrides",
    "PoolStats",
    "Session",
    "SessionBusyError",
    "SessionPool",
    "SessionState",
    "Timeouts",
    "ToolCall",
    "ToolContent",
    "ToolDefinition",
    "Turn",
    "TurnError",
    "TurnErrorKind",
    "TurnStream",
    "TurnTimeoutError",
    "UnknownToolCallError",
    "check_length",
    "has_api_key",
    "on_background",
    "query",
    "run_on_background",
    "sealed_options",
    "start_on_background",
    "tell_background",
    "with_tool_server",
]
