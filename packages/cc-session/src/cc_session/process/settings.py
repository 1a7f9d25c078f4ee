"""Settings of a running process: the only record of their values.

A control request changes settings. The sender can be cancelled before the answer, when the CLI has the new values, or
will have them. So a setting is unknown from the request until the CLI confirms it; an unknown setting is sent again
before the process is used. The transport makes the record from control requests and their answers, so that no caller
can record a value without confirmation. The CLI carries out control requests in the order of arrival (measured on CLI
2.1.81 to 2.1.330). `changing()` records a change that takes several messages.
"""

import os
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias, cast

from claude_agent_sdk import ClaudeAgentOptions

from cc_types import JsonValue

__all__ = ["EXACT_MODES", "SettingValues", "Settings", "control_requests", "settings_in", "variable"]

SettingValues: TypeAlias = Mapping[str, object]
"""Values by setting: `model`, `permission_mode`, `system_prompt`, `cwd`, `mcp_servers`, or an environment `variable()`.
A system prompt is a text, or None if the caller has none."""

EXACT_MODES = frozenset({"default", "acceptEdits", "dontAsk"})
"""Permission modes between which a process changes without a trace in its requests. Measured on CLI 2.1.329."""

_VARIABLE = "env."


def variable(name: str) -> str:
    """Return the setting for an environment variable."""
    return _VARIABLE + name


class Settings:
    """Confirmed settings of a process.

    Args:
        options: The options at the start, whose values need no confirmation.
    """

    def __init__(self, options: ClaudeAgentOptions) -> None:
        env = {**os.environ, **options.env}
        self._start: dict[str, object] = {variable(name): value for name, value in env.items()}
        match options.system_prompt:
            case str(prompt) | {"type": "custom", "prompt": str(prompt)}:
                pass
            case _:
                prompt = None
        self._start |= {
            "model": options.model,
            "permission_mode": options.permission_mode,
            "system_prompt": prompt or None,
            "cwd": options.cwd and str(options.cwd),
        }
        self._confirmed: dict[str, object] = {}
        self.unknown: set[str] = set()
        """Settings whose value is not confirmed."""
        self._requests: dict[str, dict[str, JsonValue]] = {}

    def sent(self, request_id: str, request: Mapping[str, JsonValue]) -> None:
        """Record a control request that is about to be written."""
        values = settings_in(request)
        self.unknown |= values.keys()
        for other in self._requests.values():
            # With two requests at the same time, neither answer proves the value of a setting that both change.
            for name in values.keys() & other.keys():
                del values[name], other[name]
        self._requests[request_id] = values

    def answered(self, request_id: str, *, is_success: bool) -> None:
        """Record the answer to a control request. After a refusal the settings in it stay unknown."""
        values = self._requests.pop(request_id, {})
        if is_success:
            self._confirmed |= values
            self.unknown -= values.keys()

    @contextmanager
    def changing(self, name: str, value: object) -> Generator[None]:
        """Record a change by several messages. It is confirmed if the block ends without an exception."""
        self.unknown.add(name)
        yield
        self._confirmed[name] = value
        self.unknown.discard(name)

    def missing(self, wanted: SettingValues) -> dict[str, object]:
        """Return the wanted settings that are not confirmed."""
        return {name: value for name, value in wanted.items() if name in self.unknown or self[name] != value}

    def at_start(self) -> dict[str, object]:
        """Return the start values of all settings that have changed since, or may have changed."""
        return {name: self._start.get(name) for name in self._confirmed.keys() | self.unknown}

    def begin(self) -> None:
        """Take the confirmed values for the start values: the session has been set up."""
        self._start |= self._confirmed
        self._confirmed.clear()

    def __getitem__(self, name: str) -> object:
        """Return the last confirmed value; None if a setting never had one."""
        return self._confirmed.get(name, self._start.get(name))


def control_requests(wanted: SettingValues, model: object) -> Iterator[tuple[str, dict[str, JsonValue]]]:
    """Yield subtype and fields of each control request for these changes, with the process's present model."""
    changes = cast("Mapping[str, JsonValue]", wanted)
    if "system_prompt" in changes:
        # The request must name the model, and does not change it; None is the CLI's default model, which has no name.
        prompt, name = changes["system_prompt"], cast("str | None", model)
        yield "set_model", {"model": name, "system_prompt": prompt, "only_if_model_is_current": name is not None}
    if "permission_mode" in changes:
        yield "set_permission_mode", {"mode": changes["permission_mode"]}
    settings: dict[str, JsonValue] = {}
    if "model" in changes:
        # Not by `set_model`: the CLI would make an API call for a model that is new to the process.
        settings["model"] = changes["model"]
    if env := {name.removeprefix(_VARIABLE): value for name, value in changes.items() if name.startswith(_VARIABLE)}:
        settings["env"] = env
    if settings:
        yield "apply_flag_settings", {"settings": settings}


def settings_in(request: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the settings that a control request changes."""
    match request:
        case {"subtype": "apply_flag_settings", "settings": {**settings}}:
            env = settings.get("env")
            values = {variable(name): value for name, value in env.items()} if isinstance(env, dict) else {}
            return values | {name: value for name, value in settings.items() if name == "model"}
        case {"subtype": "set_model", "system_prompt": prompt, "only_if_model_is_current": True}:
            return {"system_prompt": prompt} if prompt else {}  # an empty prompt changes nothing
        case {"subtype": "set_model", **fields}:
            return {name: fields.get(name) for name in ("model", "system_prompt") if name == "model" or name in fields}
        case {"subtype": "set_permission_mode"}:
            return {"permission_mode": request.get("mode")}
        case _:
            return {}
