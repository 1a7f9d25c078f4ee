"""The thinking that options ask for, as a budget in tokens.

A request changes the budget of a running process. Measured on CLI 2.1.332: the bodies equal those of a process that
began with the budget, if it thought at its start.
"""

import os
from collections.abc import Mapping

from claude_agent_sdk import ClaudeAgentOptions, ThinkingConfig

from cc_types import JsonValue

from .sealed import is_sealed


def thinking_budget(options: ClaudeAgentOptions) -> object:
    """Return the budget, 0 for none; or the option itself, if it is not only a budget."""
    match options.thinking:
        case {"type": "enabled", "budget_tokens": budget, **others} if not others:
            return budget
        case {"type": "disabled"}:
            return 0
        case thinking:
            return thinking


def fixed_thinking(options: ClaudeAgentOptions) -> ThinkingConfig | None:
    """Return what is fixed at the start: the same for all budgets in sealed processes."""
    # The variable takes precedence over the option, and the request over both.
    has_variable = "MAX_THINKING_TOKENS" in options.env or "MAX_THINKING_TOKENS" in os.environ
    is_free = isinstance(thinking_budget(options), int) and is_sealed(options) and not has_variable
    return {"type": "disabled"} if is_free else options.thinking


def thinking_in(request: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the budget that a control request sets, as a setting."""
    is_change = request["subtype"] == "set_max_thinking_tokens"
    return {"thinking": request.get("max_thinking_tokens")} if is_change else {}
