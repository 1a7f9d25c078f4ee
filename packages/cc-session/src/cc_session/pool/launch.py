"""Parameters of a lease: the start of its process, and settings for a running one."""

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypedDict, cast

from claude_agent_sdk import ClaudeAgentOptions
from claude_agent_sdk.types import PermissionMode, SystemPromptFile, SystemPromptPreset, ToolsPreset

from ..hooks.hook import Hook
from ..mcp.servers import McpServer
from ..policy.policy import Policy
from ..process.cli_file import check_paths
from ..process.options import sealed_options
from ..process.settings import EXACT_MODES, SettingValues
from ..timeouts import Timeouts
from . import launch_key as _keys
from .changes import prompt_of

__all__ = ["Defaults", "Launch", "LeaseOverrides"]


class LeaseOverrides(TypedDict, total=False):
    """Values that a lease can give instead of its pool's."""

    system_prompt: str | SystemPromptPreset | SystemPromptFile | None
    """This and the following fields: as in `ClaudeAgentOptions`."""
    model: str | None
    permission_mode: PermissionMode | None
    env: Mapping[str, str]
    """Merged over that of the options."""
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
    timeouts: Timeouts


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Arguments of `Session.open()`, copied, so that later changes by the caller have no effect."""

    options: ClaudeAgentOptions
    policy: Policy | None
    hooks: tuple[Hook[Any], ...]
    mcp_servers: Mapping[str, McpServer] | None
    require_mcp: bool
    timeouts: Timeouts
    key: Hashable = field(init=False, repr=False)
    """Equal for two launches whose processes can serve each other's leases."""

    def __post_init__(self) -> None:
        extensions = (self.policy, self.hooks, self.mcp_servers is None, self.require_mcp, self.timeouts)
        key = (_keys.frozen((self._fixed(), *extensions, self._companions())), _keys.environment())
        object.__setattr__(self, "key", key)

    def _companions(self) -> object:
        """The rest of the key, for launches that start more than a session."""
        return None

    @property
    def prompt(self) -> str | None:
        """The system prompt that is a setting of the process; None if there is none, or if it is fixed at the start."""
        return prompt_of(self.options)

    @property
    def settings(self) -> SettingValues:
        """The settings of a process for this launch."""
        options = self.options
        settings: dict[str, object] = {
            "model": options.model,
            "permission_mode": options.permission_mode,
            "system_prompt": self.prompt,
        }
        if options.cwd is not None and _keys.can_move(options):
            settings["cwd"] = str(options.cwd)
        if self.mcp_servers is not None:
            settings["mcp_servers"] = self.mcp_servers
        return settings

    def _fixed(self) -> ClaudeAgentOptions:
        options, mode = self.options, self.options.permission_mode
        return replace(
            options,
            system_prompt=None if isinstance(options.system_prompt, str) else options.system_prompt,
            model=options.model if _keys.model_is_fixed(options) else None,
            permission_mode="default" if mode in EXACT_MODES else mode,
            cwd="any" if options.cwd is not None and _keys.can_move(options) else options.cwd,
        )


@dataclass(frozen=True, slots=True)
class Defaults:
    """Default start parameters of a pool's processes."""

    options: ClaudeAgentOptions | None
    policy: Policy | None
    hooks: Sequence[Hook[Any]]
    mcp_servers: Mapping[str, McpServer] | None
    require_mcp: bool
    timeouts: Timeouts

    def __post_init__(self) -> None:
        if self.options is not None:
            check_paths(self.options.cwd, self.options.cli_path)

    def launch(self, options: ClaudeAgentOptions | None, overrides: LeaseOverrides) -> Launch:
        """Return the launch of a lease with these options, or else ours, and these overrides.

        Raises:
            TypeError: An override has a name that no option has.
        """
        changes: dict[str, Any] = {**overrides}
        hooks, servers = changes.pop("hooks", self.hooks), changes.pop("mcp_servers", self.mcp_servers)
        return Launch(
            policy=changes.pop("policy", self.policy),
            hooks=tuple(hooks),
            mcp_servers=None if servers is None else dict(servers),
            require_mcp=self.require_mcp,
            timeouts=changes.pop("timeouts", self.timeouts),
            options=_overridden(options or self.options, changes),
        )


def _overridden(options: ClaudeAgentOptions | None, overrides: dict[str, Any]) -> ClaudeAgentOptions:
    env = {**(options.env if options is not None else {}), **overrides.get("env", {})}
    # The login, which `env` may choose, decides which options are the sealed ones.
    options = options if options is not None else sealed_options(env=env)
    whole = {entry.name: getattr(options, entry.name) for entry in fields(options)}
    whole |= overrides | {"env": {**options.env, **env}}
    changed = ClaudeAgentOptions(**{name: _copied(value) for name, value in whole.items()})
    return changed if changed.cwd is None else replace(changed, cwd=os.path.abspath(changed.cwd))


def _copied(value: Any) -> Any:
    match value:
        case dict():
            return {key: _copied(item) for key, item in cast("dict[Any, Any]", value).items()}
        case list():
            return [_copied(item) for item in cast("list[Any]", value)]
        case _:
            return value
