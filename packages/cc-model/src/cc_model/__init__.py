"""Claude Code as a pydantic-ai model.

`ClaudeCodeModel` for `Agent(model)`, `claude_code()` for `Agent("claude-code:sonnet")`. The import has no side effect.
"""

from cc_ipc import ToolNotFoundError

from .capability import ClaudeCode, claude_code
from .errors import ModelPlanLimitError, ToolsetNotRegisteredError
from .model import ClaudeCodeModel, ClaudeCodeModelSettings
from .provider import ClaudeCodeProvider
from .request_log import RequestLog
from .transcript import MessageCallback

__all__ = [
    "ClaudeCode",
    "ClaudeCodeModel",
    "ClaudeCodeModelSettings",
    "ClaudeCodeProvider",
    "MessageCallback",
    "ModelPlanLimitError",
    "RequestLog",
    "ToolNotFoundError",
    "ToolsetNotRegisteredError",
    "claude_code",
]
