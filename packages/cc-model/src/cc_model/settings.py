"""Settings of a request to Claude Code."""

from pydantic_ai.models.anthropic import AnthropicModelSettings

__all__ = ["ClaudeCodeModelSettings"]


class ClaudeCodeModelSettings(AnthropicModelSettings, total=False):
    """The settings of `AnthropicModel`, which reach the API through Claude Code as they are.

    Cache settings are the exception: Claude Code places its own breakpoints.
    """
