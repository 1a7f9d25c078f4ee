"""The launch key: everything that is fixed at a process's start. Leases with equal keys can share the process.

Settings that the CLI can change on a warm process without a trace in its requests are left out. Measured on CLI
2.1.329, by the bodies and headers that a fresh process and a changed process send:

- The model, on an empty conversation; later a `/model` echo would stand in it. But Claude Code's system prompt is
  written for the model that the process began with.
- The system prompt, if it is the caller's alone, but a process with a prompt cannot go back to none.
- MCP servers in addition to the options'.
- The working folder, if the CLI's configuration is not the user's: the CLI records there that the folder is trusted.
- The permission mode, among those in `EXACT_MODES`. `auto` and `plan` leave a header or a reminder behind, and
  `bypassPermissions` has to be allowed at the start.
"""

import os
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import cast

from claude_agent_sdk import ClaudeAgentOptions

from ..process.login import Login, login_of
from ..process.options import is_sealed

__all__ = ["can_move", "environment", "frozen", "model_is_fixed", "serves_once"]

# Beginnings of this process's environment variables that choose a login or an API. Others are read at the start.
_LOGIN = ("ANTHROPIC_", "AWS_", "AZURE_", "CLAUDE_", "GOOGLE_", "HOME")

# Options with which a conversation does not begin empty, belongs to a named session, or has a token budget that shrinks
# with each lease.
_ONCE = (
    "continue_conversation", "fork_session", "resume", "resume_session_at", "session_id",
    "session_store", "task_budget",
)  # fmt: skip
_ONCE_ARGS = frozenset({"continue", "fork-session", "max-budget-usd", "resume", "session-id", "task-budget"})


class _Same:
    """Wrapper for an object that is equal only to itself. Keeps the object alive, so that its id stays unique."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other._value is self._value

    def __hash__(self) -> int:
        return id(self._value)


def frozen(value: object) -> Hashable:
    """Return a hashable copy: containers and dataclasses by content, other objects by identity."""
    match value:
        case None | bool() | int() | float() | str() | bytes():
            return value
        case Path():
            return str(value)
        case Mapping():
            items = cast("Mapping[object, object]", value).items()
            return ("mapping", *((frozen(key), frozen(item)) for key, item in items))
        case Sequence():
            return ("sequence", *map(frozen, cast("Sequence[object]", value)))
        case Set():
            return frozenset(map(frozen, cast("Set[object]", value)))
        case _ if is_dataclass(value) and not isinstance(value, type):
            return (type(value), *(frozen(getattr(value, field.name)) for field in fields(value)))
        case _:
            return _Same(value)


def environment() -> Hashable:
    """Return the variables in this process's environment that belong to the key."""
    return tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith(_LOGIN)))


def can_move(options: ClaudeAgentOptions) -> bool:
    """Return true if a process can change its working folder: the configuration is not the user's."""
    return is_sealed(options) and login_of(options.env) is not Login.SUBSCRIPTION


def model_is_fixed(options: ClaudeAgentOptions) -> bool:
    """Return true if a process that began with another model would send other requests."""
    has_own_prompt = options.system_prompt is None or isinstance(options.system_prompt, str)
    # Settings can name a model for processes without `model`; after a failure a fallback model may stay.
    has_settings = options.setting_sources != [] or options.settings is not None
    return not has_own_prompt or has_settings or options.fallback_model is not None


def serves_once(options: ClaudeAgentOptions) -> bool:
    """Return true if a process can never serve a second lease."""
    return any(getattr(options, name) not in (None, False) for name in _ONCE) or bool(
        _ONCE_ARGS & options.extra_args.keys()
    )
