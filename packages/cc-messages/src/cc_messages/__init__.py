"""The Anthropic Messages API, answered by the Claude Code CLI.

`ClaudeCodeTransport` is an HTTP transport, and `create_app()` makes a server of one. Knows the Messages API and
sessions; does not know agents or models.
"""

from .api.limits import LimitCallback
from .loop.approvals import APPROVED
from .loop.claude_code_tools import ClaudeCodeTools
from .loop.cli_tools import CLICall, CLITools, RequestContext, RequestReport, request_context
from .process.api_log import retry_after
from .server.app import create_app
from .transport import ERROR_EXTENSION, ClaudeCodeTransport

__all__ = [
    "APPROVED", "ERROR_EXTENSION", "CLICall", "CLITools", "ClaudeCodeTools", "ClaudeCodeTransport", "LimitCallback",
    "RequestContext", "RequestReport", "create_app", "request_context", "retry_after",
]  # fmt: skip
