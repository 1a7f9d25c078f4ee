"""The Anthropic Messages API, answered by the Claude Code CLI.

`ClaudeCodeTransport` is an HTTP transport; `cc_messages.server.create_app()` makes a server with it. Knows the Messages
API and sessions; does not know agents or models.
"""

from typing import TYPE_CHECKING

from .api.response import retry_after
from .context import (
    ClaudeCodeTools,
    CLICall,
    CLITools,
    LimitCallback,
    LoopEndedError,
    RequestContext,
    RequestReport,
    request_context,
)
from .loop.calls import APPROVED
from .loop.request import keeps_size
from .transport import ERROR_EXTENSION, ClaudeCodeTransport

if TYPE_CHECKING:
    from .server import create_app

__all__ = [
    "APPROVED", "ERROR_EXTENSION", "CLICall", "CLITools", "ClaudeCodeTools", "ClaudeCodeTransport", "LimitCallback",
    "LoopEndedError", "RequestContext", "RequestReport", "create_app", "keeps_size", "request_context", "retry_after",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name == "create_app":  # imported at its first use: a model loads no server
        from .server import create_app

        return create_app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
