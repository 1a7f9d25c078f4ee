"""The model as a setting."""

import os
from collections.abc import Mapping

from claude_agent_sdk import ClaudeAgentOptions

from cc_types import JsonValue


def asked_model(options: ClaudeAgentOptions) -> str | None:
    """Return the model for which options and environment ask; None for the CLI default, or that of settings files."""
    by_environment = options.env.get("ANTHROPIC_MODEL", os.environ.get("ANTHROPIC_MODEL")) or None
    return by_environment if options.model is None else options.model


def fixed_model(options: ClaudeAgentOptions) -> str | None:
    """Return the model if the process must start with it, else None."""
    # Claude Code's own prompt is written for the model that the process began with.
    has_own_prompt = options.system_prompt is None or isinstance(options.system_prompt, str)
    # After a failure a fallback model may stay.
    can_change = has_own_prompt and not reads_settings(options) and options.fallback_model is None
    return None if can_change else options.model


def reads_settings(options: ClaudeAgentOptions) -> bool:
    """Return true if settings can name a model for processes whose options do not."""
    return options.setting_sources != [] or options.settings is not None


def model_in(request: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the model in a control request that sets it."""
    is_change = request["subtype"] == "set_model" and request.get("only_if_model_is_current") is not True
    return {"model": request.get("model")} if is_change else {}
