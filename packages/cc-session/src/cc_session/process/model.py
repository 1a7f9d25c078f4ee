"""The model as a setting."""

import os
from collections.abc import Mapping

from claude_agent_sdk import ClaudeAgentOptions

from cc_types import JsonValue

EXACT_MODES = frozenset({"default", "acceptEdits", "dontAsk"})
"""Modes between which a process changes without a trace.

`auto` and `plan` leave a header or a reminder behind, and `bypassPermissions` has to be allowed at the start.
"""


def asked_model(options: ClaudeAgentOptions) -> str | None:
    """Return the model for which options and environment ask; None for the CLI default, or that of settings files."""
    by_environment = options.env.get("ANTHROPIC_MODEL", os.environ.get("ANTHROPIC_MODEL")) or None
    return by_environment if options.model is None else options.model


def fixed_model(options: ClaudeAgentOptions) -> str | None:
    """Return the model if the process must start with it, else None."""
    return None if can_change_model(options) else options.model


def can_change_model(options: ClaudeAgentOptions) -> bool:
    """Return true if a process can change its model, and go back, without a trace in its requests."""
    # Claude Code's own prompt is written for the model of the first request.
    prompt = options.system_prompt
    has_own_prompt = prompt is not None and not isinstance(prompt, str) and prompt["type"] != "custom"
    # After a failure a fallback model may stay. In other modes, models have other tools, headers and reminders.
    is_plain = options.fallback_model is None and options.permission_mode in (None, *EXACT_MODES)
    return is_plain and not has_own_prompt and not reads_settings(options)


def knows_model(options: ClaudeAgentOptions) -> bool:
    """Return true if the model is not that of settings files."""
    return asked_model(options) is not None or not reads_settings(options)


def reads_settings(options: ClaudeAgentOptions) -> bool:
    """Return true if settings can give a process what its options do not, and no request goes back to it."""
    return options.setting_sources != [] or options.settings is not None


def model_in(request: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the model in a control request that sets it."""
    is_change = request["subtype"] == "set_model" and request.get("only_if_model_is_current") is not True
    return {"model": request.get("model")} if is_change else {}
