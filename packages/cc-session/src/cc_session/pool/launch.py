"""Parameters of a lease: for the start of a process, and settings for a running process.

The launch key has everything that is fixed at a process's start. Leases with equal keys can share the process.
What the CLI can change on a warm process without a trace in its requests is left out (`process/settings.py`).
"""

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypedDict

from claude_agent_sdk import ClaudeAgentOptions, ThinkingConfig
from claude_agent_sdk.types import EffortLevel, PermissionMode, SystemPromptFile, SystemPromptPreset, ToolsPreset
from typing_extensions import override

from ..hooks.hook import Hook
from ..identity import identity
from ..limits import Timeouts
from ..mcp.servers import McpServer
from ..policy.policy import Policy
from ..policy.questions import Questions
from ..process.sealed import sealed_options
from ..process.settings import SettingValues, asked_values, fixed_options
from ..session.extensions import SessionSetup
from .start_files import start_files

# Options with which a conversation does not begin empty, belongs to a named session, or has a token budget that shrinks
# with each lease.
_ONCE = (
    "continue_conversation", "fork_session", "resume", "resume_session_at", "session_id",
    "session_store", "task_budget",
)  # fmt: skip
_ONCE_ARGS = frozenset({"continue", "fork-session", "max-budget-usd", "resume", "session-id", "task-budget"})


class LeaseOverrides(TypedDict, total=False):
    """Values that a lease can give instead of its pool's."""

    system_prompt: str | SystemPromptPreset | SystemPromptFile | None
    """This and the following fields: as in `ClaudeAgentOptions`."""
    model: str | None
    effort: EffortLevel | None
    thinking: ThinkingConfig | None
    permission_mode: PermissionMode | None
    env: Mapping[str, str]
    """Merged over the options' environment."""
    cwd: str | Path | None
    cli_path: str | Path | None
    tools: list[str] | ToolsPreset | None
    allowed_tools: list[str]
    disallowed_tools: list[str]
    max_turns: int | None
    output_format: dict[str, Any] | None
    policy: Policy | None
    """This and the following fields: as in `Session.open()`."""
    hooks: Sequence[Hook[Any]]
    mcp_servers: Mapping[str, McpServer] | None
    questions: Questions | None
    timeouts: Timeouts


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Launch(SessionSetup):
    """Arguments of `Session.open()`, and what a process for them has in common with others."""

    key: tuple[Hashable, tuple[tuple[str, str], ...]] = field(init=False, repr=False)
    """Equal for two launches whose processes can serve each other's leases."""
    settings: SettingValues = field(init=False, repr=False)
    """Settings that a process must have for this launch."""

    @classmethod
    def of(cls, options: ClaudeAgentOptions | None, values: LeaseOverrides, *, require_mcp: bool = True) -> "Launch":
        """Return the launch with these options, or else sealed ones, and values for the options and the session.

        Raises:
            TypeError: A value has a name that no option has.
        """
        changes: dict[str, Any] = {**values}
        session = {name: changes.pop(name) for name in ("policy", "questions", "timeouts") if name in changes}
        hooks, servers = changes.pop("hooks", ()), changes.pop("mcp_servers", None)
        options = _overridden(options, changes)
        return Launch(options=options, hooks=hooks, mcp_servers=servers, require_mcp=require_mcp, **session)

    @override
    def __post_init__(self) -> None:
        SessionSetup.__post_init__(self)  # `super()` fails in a dataclass with slots
        options, fixed = self.options, fixed_options(self.options)
        setup = (self.policy, self.hooks, self.mcp_servers is None, self.require_mcp, self.timeouts, self.questions)
        key = identity((fixed, *setup, self._companions(), start_files(options)))
        object.__setattr__(self, "key", (key, _environment()))
        settings = asked_values(options)
        if self.mcp_servers is not None:
            settings["mcp_servers"] = self.mcp_servers or None
        object.__setattr__(self, "settings", settings)

    @property
    def is_current(self) -> bool:
        """True if the program's variables are still those of the key. A process that starts gets the current ones."""
        return self.key[1] == _environment()

    def _companions(self) -> object:
        """More values for the key, for launches that start more than a session."""
        return None


def _environment() -> tuple[tuple[str, str], ...]:
    """Return the variables of this program: the process gets them all, and the CLI reads more than a thousand."""
    # pytest changes its variable for each test.
    return tuple(sorted(variable for variable in os.environ.items() if variable[0] != "PYTEST_CURRENT_TEST"))


def _overridden(options: ClaudeAgentOptions | None, overrides: dict[str, Any]) -> ClaudeAgentOptions:
    env = {**(options.env if options is not None else {}), **overrides.get("env", {})}
    # The login, which `env` may choose, decides which options are sealed.
    options = options if options is not None else sealed_options(env=env)
    changed = replace(options, **overrides | {"env": {**options.env, **env}})
    return changed if changed.cwd is None else replace(changed, cwd=os.path.abspath(changed.cwd))


def serves_once(options: ClaudeAgentOptions) -> bool:
    """Return true if a process can never serve a second lease."""
    return any(getattr(options, name) not in (None, False) for name in _ONCE) or bool(
        _ONCE_ARGS & options.extra_args.keys()
    )
