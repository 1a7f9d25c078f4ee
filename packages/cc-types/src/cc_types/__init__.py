"""Data types for the Claude Code output: results, usage, errors.

The lowest layer: it depends on pydantic and JSON only, not on processes, SDKs or frameworks.
"""

from pydantic import JsonValue

from .api_error import APIError, PlanLimitError
from .errors import (
    ClaudeCodeError,
    CLIConnectionError,
    CLIJSONDecodeError,
    CLINotFoundError,
    ControlRequestError,
    ControlTimeoutError,
    MessageParseError,
    ProcessExitedError,
)
from .rate_limits import LimitWindow, RateLimit, RateLimits
from .response import CLIResponse, DeferredToolUse, PermissionDenial
from .usage import CacheCreation, CLIUsage, ModelUsage, OutputTokensDetails, ServerToolUse
from .wire import WireModel

__all__ = [
    "APIError",
    "CLIConnectionError",
    "CLIJSONDecodeError",
    "CLINotFoundError",
    "CLIResponse",
    "CLIUsage",
    "CacheCreation",
    "ClaudeCodeError",
    "ControlRequestError",
    "ControlTimeoutError",
    "DeferredToolUse",
    "JsonValue",
    "LimitWindow",
    "MessageParseError",
    "ModelUsage",
    "OutputTokensDetails",
    "PermissionDenial",
    "PlanLimitError",
    "ProcessExitedError",
    "RateLimit",
    "RateLimits",
    "ServerToolUse",
    "WireModel",
]
