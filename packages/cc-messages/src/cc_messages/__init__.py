"""The Anthropic Messages API, answered by the Claude Code CLI.

`ClaudeCodeTransport` is an HTTP transport, and `create_app()` makes a server of one. Knows the Messages API and
sessions; does not know agents or models.
"""

from .approvals import APPROVED
from .cli_tools import CLICall, CLITools, beside_requests
from .own_tools import OwnTools
from .pool import Route
from .server import create_app
from .transport import ClaudeCodeTransport

__all__ = [
    "APPROVED",
    "CLICall",
    "CLITools",
    "ClaudeCodeTransport",
    "OwnTools",
    "Route",
    "beside_requests",
    "create_app",
]
