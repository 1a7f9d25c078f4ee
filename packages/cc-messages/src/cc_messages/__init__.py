"""The Anthropic Messages API, answered by the Claude Code CLI.

`ClaudeCodeTransport` is an HTTP transport; the package cc-server makes a server with it. Knows the Messages API and
sessions; does not know agents or models.
"""

from importlib import import_module

from .api.response import retry_after
from .context import (
    ClaudeCodeTools,
    CLICall,
    CLITools,
    LoopEndedError,
    LoopStep,
    RequestContext,
    RequestReport,
    request_context,
)
from .limit_watch import LimitCallback
from .loop.calls import APPROVED
from .loop.request import keeps_size
from .transport import ERROR_EXTENSION, ClaudeCodeTransport

__all__ = [
    "APPROVED", "ERROR_EXTENSION", "CLICall", "CLITools", "ClaudeCodeTools", "ClaudeCodeTransport", "LimitCallback",
    "LoopEndedError", "LoopStep", "RequestContext", "RequestReport", "keeps_size", "request_context", "retry_after",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name == "create_app":  # stands above this package, which therefore does not import it by a statement
        try:
            return import_module("cc_server").create_app
        except ModuleNotFoundError as error:
            if error.name != "cc_server":
                raise
            raise ImportError("create_app() is in the package cc-server: pip install cc-server") from None
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
