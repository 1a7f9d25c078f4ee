"""Claude Code as a pydantic-ai model.

`ClaudeCodeModel` for `Agent(model)`, `claude_code()` for `Agent("claude-code:sonnet")`. Importing it imports cc-compat,
so that a message of an unknown type causes a warning.
"""

import cc_compat as _  # imported for its effect
from cc_ipc import ToolNotFoundError

from .capability import ClaudeCode, claude_code
from .errors import ModelPlanLimitError, ToolsetNotRegisteredError
from .model import ClaudeCodeModel
from .provider import ClaudeCodeProvider
from .settings import ClaudeCodeModelSettings
from .transcript import MessageCallback

__all__ = [
    "ClaudeCode",
    "ClaudeCodeModel",
    "ClaudeCodeModelSettings",
    "ClaudeCodeProvider",
    "MessageCallback",
    "ModelPlanLimitError",
    "ToolNotFoundError",
    "ToolsetNotRegisteredError",
    "_",
    "claude_code",
]
