"""Settings of a request to Claude Code."""

from pydantic_ai.models.anthropic import AnthropicModelSettings

from cc_messages import OwnTools

__all__ = ["ClaudeCodeModelSettings"]


class ClaudeCodeModelSettings(AnthropicModelSettings, total=False):
    """The settings of `AnthropicModel`, which reach the API through Claude Code as they are.

    Cache settings are the exception: Claude Code places its own breakpoints.
    """

    claude_code_tools: OwnTools
    """Tools of Claude Code itself that it may use for the request. `claude_code(tools=…)` sets it for an agent."""
