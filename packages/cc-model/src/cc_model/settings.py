"""Settings for a request to Claude Code."""

from pydantic_ai.models.anthropic import AnthropicModelSettings

from cc_messages import ClaudeCodeTools

__all__ = ["ClaudeCodeModelSettings"]


class ClaudeCodeModelSettings(AnthropicModelSettings, total=False):
    """The settings of `AnthropicModel`, which reach the API through Claude Code unchanged.

    In the CLI's own loop, which `claude_code_tools` also uses, cache settings are left out: Claude Code places
    breakpoints there.
    """

    claude_code_tools: ClaudeCodeTools
    """Claude Code's own tools for the request. `claude_code(tools=…)` sets it for an agent."""
