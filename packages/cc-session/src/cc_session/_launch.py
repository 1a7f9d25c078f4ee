"""What a lease asks for: how its process is to be started, and what is set on one that runs already."""

import os
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self, TypedDict, cast

from claude_agent_sdk import ClaudeAgentOptions
from claude_agent_sdk.types import PermissionMode, SystemPromptFile, SystemPromptPreset, ToolsPreset

from . import _keys
from .options import sealed_options
from .timeouts import Timeouts

__all__ = ["Launch", "LeaseOverrides"]


class LeaseOverrides(TypedDict, total=False):
    """What a lease can ask for beside the options, each as in `ClaudeAgentOptions`; `env` is laid over theirs."""

    system_prompt: str | SystemPromptPreset | SystemPromptFile | None
    model: str | None
    permission_mode: PermissionMode | None
    env: Mapping[str, str]
    cwd: str | Path | None
    cli_path: str | Path | None
    tools: list[str] | ToolsPreset | None
    allowed_tools: list[str]
    disallowed_tools: list[str]
    max_turns: int | None
    output_format: dict[str, Any] | None
    timeouts: Timeouts
    """Not one of the options: how long the session waits for what."""


@dataclass(frozen=True, slots=True)
class Launch:
    """Options, copied, so that what their owner does to them later changes nothing."""

    options: ClaudeAgentOptions
    timeouts: Timeouts
    key: Hashable = field(init=False, repr=False)
    """Equal for two launches whose processes can serve each other's leases."""

    @classmethod
    def of(cls, options: ClaudeAgentOptions | None, overrides: LeaseOverrides, timeouts: Timeouts) -> Self:
        """Copy the options, sealed ones if None, with the overrides in them.

        Raises:
            TypeError: An override has a name that no option has.
        """
        changes: dict[str, Any] = {**overrides}
        timeouts = changes.pop("timeouts", timeouts)
        return cls(_overridden(options, changes), timeouts)

    def __post_init__(self) -> None:
        key = (_keys.frozen(self._fixed()), self.timeouts, _keys.environment())
        object.__setattr__(self, "key", key)

    def _fixed(self) -> ClaudeAgentOptions:
        mode, model = self.options.permission_mode, self.options.model
        return replace(
            self.options,
            model=model if _keys.model_is_fixed(self.options) else None,
            permission_mode="default" if mode in _keys.EXACT_MODES else mode,
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
