"""The table of settings: what a running process can be told, so that it serves a lease as a new process would.

A row has all that is known about a setting: the value that options ask for, what of it is fixed at the start, the
control requests that change it, and when a change leaves no trace. The key of a launch, the record of a process, the
changes before a lease and the undo after it read this table. A setting that is not in it belongs to the start. Measured
on CLI 2.1.329, by the bodies and headers that a new process and a changed process send.

A caller that was cancelled may have sent a request whose answer is still to come. So a setting is unknown from the
request until the CLI confirms it, and is sent again before the process is used. `Settings` is the only record, made
from requests and answers: no caller can record a value without confirmation.
"""

import functools
import logging
import os
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias, cast

import anyio.to_thread
from claude_agent_sdk import ClaudeAgentOptions

from cc_types import CLIConnectionError, ControlRequestError, JsonValue

from ..identity import identity, owned
from .cli_path import find_cli
from .login import Login, login_of
from .model import EXACT_MODES, asked_model, can_change_model, fixed_model, knows_model, model_in, reads_settings
from .sealed import forgets_servers, is_sealed
from .thinking import fixed_thinking, thinking_budget, thinking_in

logger = logging.getLogger(__name__)

SettingValues: TypeAlias = Mapping[str, object]
"""Values by the name of the setting, environment variables by `variable()`."""

Request: TypeAlias = Mapping[str, JsonValue]
"""A control request with its subtype."""

_VARIABLE = "env."


def variable(name: str) -> str:
    """Return the setting for an environment variable."""
    return _VARIABLE + name


class Process(Protocol):
    """A running process, as far as a change of its settings uses it."""

    settings: "Settings"

    async def request(self, subtype: str, fields: dict[str, JsonValue]) -> object:
        """Send a control request; raise `ControlRequestError` if the CLI refuses."""

    async def move(self, folder: str) -> None:
        """Change the working folder."""

    async def serve(self, servers: Mapping[str, Any]) -> object:
        """Replace the MCP servers."""

    def has_other_texts(self, servers: Mapping[str, Any]) -> bool:
        """Return true if the CLI may keep other texts of these MCP servers' tools."""
        ...


Change: TypeAlias = Callable[[Process, SettingValues], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A row of the table."""

    name: str
    change: Change
    """Sends the value, with the other values that change."""
    asked: Callable[[ClaudeAgentOptions], object] | None = None
    """Value that options ask for; None if the setting is not an option."""
    fixed: Callable[[ClaudeAgentOptions], object] | None = None
    """Value in place of the option in a launch key: equal for options whose processes can change to the other value."""
    flag: str | None = None
    """Name in the request `apply_flag_settings`."""
    read: Callable[[Request], dict[str, JsonValue]] = lambda _request: {}
    """Returns the value in a control request of another kind, by name."""
    is_exact: Callable[[ClaudeAgentOptions, str, object], bool] = lambda _options, _name, _value: True
    """Returns true if a process with these options can undo a caller's change of this name to this value."""
    can_take: Callable[[Process, object], bool] = lambda _process, _value: True
    """Returns true if a process whose value is another one can change to this value."""
    since: str = ""
    """First versions whose processes change it."""


def _prompt(options: ClaudeAgentOptions) -> object:
    prompt = options.system_prompt
    return (dict(prompt).get("prompt") if isinstance(prompt, Mapping) else prompt) or None


def _prompt_in(request: Request) -> dict[str, JsonValue]:
    prompt = request.get("system_prompt") if request["subtype"] == "set_model" else None
    return {"system_prompt": prompt} if prompt else {}  # an empty prompt changes nothing


async def _set_prompt(process: Process, changes: SettingValues) -> None:
    """Set the system prompt, by a field of `set_model` that the CLI calls internal; the CLI must keep no snapshot.

    Measured on CLI 2.1.81 to 2.1.332, with an API key and an OAuth token: 2.1.214 and newer take prompts, versions up
    to 2.1.212 only at the start. A CLI that takes prompts refuses an empty prompt; others ignore the field, and set the
    model that they have.
    """
    settings, prompt = process.settings, cast("str | None", changes["system_prompt"])
    if prompt is None:
        raise CLIConnectionError(reason="The process cannot go back to no system prompt")
    if "model" in settings.unknown:  # the request names it
        await process.request("apply_flag_settings", {"settings": {"model": cast("str | None", changes.get("model"))}})
    # The request does not change the model; None is the CLI default model, which has no name.
    model = cast("str | None", settings["model"])
    fields: dict[str, JsonValue] = {"model": model, "system_prompt": "", "only_if_model_is_current": True}
    if "system_prompt" not in settings.changeable.probed:
        try:
            await process.request("set_model", fields)
        except ControlRequestError:
            settings.changeable.probed.add("system_prompt")
        else:
            raise settings.changeable.keeps("system_prompt")
    fields |= {"system_prompt": prompt, "only_if_model_is_current": model is not None}
    try:
        await process.request("set_model", fields)
    except ControlRequestError:
        if model is None:
            raise
        # The name stands for several models, as `haiku` does.
        await process.request("set_model", {**fields, "only_if_model_is_current": False})


def _can_move(options: ClaudeAgentOptions) -> bool:
    # In the user's configuration the CLI would record that the folder is trusted.
    return options.cwd is not None and is_sealed(options) and login_of(options.env) is not Login.SUBSCRIPTION


async def _move(process: Process, changes: SettingValues) -> None:
    folder = str(changes["cwd"])
    if not await anyio.to_thread.run_sync(os.path.isdir, folder, abandon_on_cancel=True):
        raise ControlRequestError(subtype="set_cwd", message=f"there is no folder {folder}")
    try:
        await process.move(folder)
    except ControlRequestError as error:
        if error.subtype != "set_cwd":
            raise
        raise process.settings.changeable.keeps("cwd") from error


# Variables that the CLI reads again for each request, so the earlier value undoes a change.
_PER_REQUEST = frozenset(map(variable, ("CLAUDE_CODE_EXTRA_BODY", "CLAUDE_CODE_MAX_OUTPUT_TOKENS")))


async def _set_mode(process: Process, changes: SettingValues) -> None:
    await process.request("set_permission_mode", {"mode": cast("str | None", changes["permission_mode"])})


async def _set_flags(process: Process, changes: SettingValues) -> None:
    """Set all flags in one request."""
    values = cast("Mapping[str, JsonValue]", changes)
    flags: dict[str, JsonValue] = {row.flag: values[row.name] for row in SETTINGS if row.flag and row.name in values}
    if env := {name.removeprefix(_VARIABLE): value for name, value in values.items() if name.startswith(_VARIABLE)}:
        flags["env"] = env
    await process.request("apply_flag_settings", {"settings": flags})


async def _serve(process: Process, changes: SettingValues) -> None:
    await process.serve(cast("Mapping[str, Any] | None", changes["mcp_servers"]) or {})


async def _set_thinking(process: Process, changes: SettingValues) -> None:
    if not isinstance(budget := changes["thinking"], int):
        raise CLIConnectionError(reason="The process cannot go back to the thinking with which it started")
    try:
        await process.request("set_max_thinking_tokens", {"max_thinking_tokens": budget})
    except ControlRequestError as error:
        raise process.settings.changeable.keeps("thinking") from error


SETTINGS = (  # in the order in which they change
    Setting(
        name="cwd",
        asked=lambda options: options.cwd and str(options.cwd),
        fixed=lambda options: "any" if _can_move(options) else options.cwd,
        change=_move,
    ),
    Setting(
        name="system_prompt",
        asked=_prompt,
        # The request names the model, and without a name would set the CLI default model.
        fixed=lambda options: (
            None if isinstance(options.system_prompt, str) and knows_model(options) else options.system_prompt
        ),
        change=_set_prompt,
        read=_prompt_in,
        is_exact=lambda options, _name, _prompt: knows_model(options),
        can_take=lambda _process, prompt: prompt is not None,
        since="2.1.214 (claude-agent-sdk 0.2.122)",
    ),
    Setting(
        name="permission_mode",
        asked=lambda options: options.permission_mode,
        fixed=lambda options: "default" if options.permission_mode in EXACT_MODES else options.permission_mode,
        change=_set_mode,
        read=lambda request: (
            {"permission_mode": request.get("mode")} if request["subtype"] == "set_permission_mode" else {}
        ),
        is_exact=lambda options, _name, mode: EXACT_MODES.issuperset({mode, options.permission_mode or "default"}),
    ),
    Setting(
        # Not by `set_model`: the CLI would make an API call for a model that is new to the process. In a conversation
        # that is not empty a `/model` echo would stay.
        name="model",
        asked=asked_model,
        fixed=fixed_model,
        change=_set_flags,
        flag="model",
        read=model_in,
        is_exact=lambda options, _name, _model: can_change_model(options),
    ),
    Setting(
        name="effort",
        asked=lambda options: options.effort,
        # A process that began without one sends the default of its model, to which no flag goes back.
        fixed=lambda options: options.effort and "low",
        change=_set_flags,
        flag="effortLevel",
        is_exact=lambda options, _name, _effort: not reads_settings(options),
    ),
    Setting(name="thinking", asked=thinking_budget, fixed=fixed_thinking, change=_set_thinking, read=thinking_in),
    Setting(
        name=_VARIABLE,  # the beginning of the name of each variable
        change=_set_flags,
        flag="env",
        is_exact=lambda options, name, _value: name in _PER_REQUEST and not reads_settings(options),
    ),
    Setting(
        name="mcp_servers",  # in addition to those in the options
        change=_serve,
        can_take=lambda process, servers: (
            forgets_servers(process.settings.options)
            and not process.has_other_texts(cast("Mapping[str, Any] | None", servers) or {})
        ),
    ),
)
"""The table."""


def _row(name: str) -> Setting:
    name = _VARIABLE if name.startswith(_VARIABLE) else name
    return next(row for row in SETTINGS if row.name == name)


def fixed_options(options: ClaudeAgentOptions) -> ClaudeAgentOptions:
    """Return options that are equal for all options whose processes can serve each other's leases."""
    return replace(options, **{row.name: row.fixed(options) for row in SETTINGS if row.fixed is not None})


def asked_values(options: ClaudeAgentOptions) -> dict[str, object]:
    """Return the values that options ask for."""
    return {row.name: row.asked(options) for row in SETTINGS if row.asked is not None}


def values_in(request: Request) -> dict[str, JsonValue]:
    """Return the settings that a control request changes."""
    values: dict[str, JsonValue] = {}
    flags = request.get("settings") if request["subtype"] == "apply_flag_settings" else None
    for row in SETTINGS:
        values |= row.read(request)
        if isinstance(flags, dict) and row.flag in flags:
            value = flags[row.flag]
            if row.name != _VARIABLE:
                values[row.name] = value
            elif isinstance(value, dict):
                values |= {variable(name): content for name, content in value.items()}
    return values


def can_take(process: Process, target_values: SettingValues) -> bool:
    """Return true if `process` has these values, or can change to them."""
    changes = process.settings.missing(target_values)
    kept = process.settings.changeable.kept
    return kept.isdisjoint(changes) and all(_row(name).can_take(process, value) for name, value in changes.items())


async def apply(process: Process, target_values: SettingValues) -> bool:
    """Set the settings of `process` that are not confirmed; return false if there are none.

    Raises:
        ControlRequestError: The CLI refuses a change.
        CLIConnectionError: The process keeps the value of its start.
    """
    changes = process.settings.missing(target_values)
    for change in dict.fromkeys(row.change for row in SETTINGS if any(_row(name) is row for name in changes)):
        await change(process, changes)
    return bool(changes)


class Changeable:
    """Settings that a CLI changes while it runs: all in the table, until a process has kept the value of its start."""

    def __init__(self) -> None:
        self.kept: set[str] = set()
        self.probed: set[str] = set()

    @staticmethod
    @functools.cache
    def of(cli: str | None) -> "Changeable":
        """Return the record for the CLI at a path."""
        return Changeable()

    def keeps(self, name: str) -> CLIConnectionError:
        """Record a setting that a process has kept, log that once, and return the error for it."""
        if name not in self.kept:
            self.kept.add(name)
            since = _row(name).since
            logger.warning(
                "This version of Claude Code takes `%s` only at the start, so each value starts a process.%s",
                name,
                since and f" Versions from {since} on change it while they run.",
            )
        return CLIConnectionError(reason=f"The process keeps the {name} with which it started")


class Settings:
    """Confirmed settings of a process, at first those in the options for its start."""

    def __init__(self, options: ClaudeAgentOptions) -> None:
        env = {**os.environ, **options.env}
        self.options = options
        """Options for the start."""
        self._start = {variable(name): value for name, value in env.items()} | asked_values(options)
        self._confirmed: dict[str, object] = {}
        self.changeable = Changeable.of(find_cli(options.cli_path))
        self.unknown: set[str] = set()
        """Settings whose value is not confirmed."""
        self._requests: dict[str, dict[str, JsonValue]] = {}

    def sent(self, request_id: str, request: Request) -> None:
        """Record a control request that is about to be written."""
        values = owned(values_in(request))
        self.unknown |= values.keys()
        for earlier_values in self._requests.values():
            # With two requests at the same time, neither answer proves the value of a setting that both change.
            for name in values.keys() & earlier_values.keys():
                del values[name], earlier_values[name]
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

    def missing(self, target_values: SettingValues) -> dict[str, object]:
        """Return the wanted settings that are not confirmed."""
        return {
            name: value
            for name, value in target_values.items()
            if name in self.unknown or identity(self[name]) != identity(value)
        }

    def can_undo(self, request: Request) -> bool:
        """Return true if a control request only changes settings, each of which can be set back without a trace."""
        values, flags = values_in(request), request.get("settings")
        has_others = isinstance(flags, dict) and not flags.keys() <= {row.flag for row in SETTINGS}
        are_exact = (_row(name).is_exact(self.options, name, value) for name, value in values.items())
        return bool(values) and not has_others and all(are_exact)

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
