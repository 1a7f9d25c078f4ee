"""CLAI2 plugin: `claude-code:` models in CLAI2, and Claude Code's login with the plan's limits.

`/plugins add claude_code cc_model_clai2` loads it. CLAI2 requires one version of pydantic-ai, so cc-model does not
require CLAI2.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from pydantic_ai.exceptions import UserError
from pydantic_clai2.plugins import AccountUsage, ModelProvider, NoSettings, Plugin, PluginLogin, UsageWindow

from cc_model import ClaudeCodeModel
from cc_model.doctor.cli import login_of
from cc_model.provider import default_provider
from cc_session.internals import find_cli, login_advice
from cc_types import LimitWindow, RateLimits

__all__ = ["ClaudeCodePlugin", "account_usage"]

_NAME = "claude-code"
_MODELS = ("sonnet", "opus", "haiku", "fable")
_LABELS = {"five_hour": "5h", "seven_day": "7d"}


class ClaudeCodePlugin(Plugin[NoSettings, Any]):
    """Runs `claude-code:NAME`, where NAME is a model id or a Claude Code alias."""

    def get_model_providers(self) -> Sequence[ModelProvider]:
        """Return the prefix `claude-code`; all its models share processes."""
        return (ModelProvider(prefix=_NAME, resolve=cache(ClaudeCodeModel), models=_MODELS, settings_from="anthropic"),)

    def get_logins(self) -> Sequence[PluginLogin]:
        """Return Claude Code's login, which only the `claude` command can change."""
        models = tuple(f"{_NAME}:{name}" for name in _MODELS)
        return (PluginLogin(name=_NAME, handler=_login, models=models, usage=_usage),)


def account_usage(limits: RateLimits | None) -> AccountUsage:
    """Return a plan's windows, the fullest first.

    Raises:
        UserError: No response has come yet, or the login has no plan.
    """
    if limits is None:
        raise UserError("The limits come with the first response; nothing was asked yet.")
    windows = sorted(limits.windows, key=_percent, reverse=True)
    if not windows:
        raise UserError("The responses have no plan limits, as with an API key.")
    return AccountUsage(
        windows=tuple(
            UsageWindow(
                label=_LABELS.get(window.kind, window.kind), used_percent=_percent(window), resets_at=window.resets_at
            )
            for window in windows
        )
    )


def _percent(window: LimitWindow) -> float:
    share = window.utilization if window.utilization is not None else float(window.status == "rejected")
    return min(share, 1.0) * 100


async def _login() -> str:
    cli = find_cli(None)
    if cli is None:
        raise UserError("There is no Claude Code CLI: install cc-model[tested].")
    try:
        login = await login_of(cli)
    except (OSError, ValueError) as error:
        raise UserError(f"Claude Code does not say whether it is logged in: {error}") from error
    if login is None:
        raise UserError(f"Claude Code is not logged in. {login_advice()}")
    return f"Claude Code is logged in: {login}"


async def _usage(profile: str | None) -> AccountUsage:
    return account_usage(default_provider().limits)
