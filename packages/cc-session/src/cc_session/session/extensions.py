"""Extensions of a session beside the SDK's options: a policy, hooks and MCP servers.

They are checked and put into the options before the process starts; the rest is sent when it runs.
"""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast, get_args

from claude_agent_sdk import (
    CanUseTool,
    ClaudeAgentOptions,
    HookMatcher,
    McpServerStatus,
    PermissionMode,
    PermissionResult,
    ToolPermissionContext,
)  # fmt: skip
from claude_agent_sdk.types import HookEvent

from cc_types import ControlRequestError, JsonValue

from ..errors import HooksDisabledError
from ..hooks.callbacks import CallbackRunner
from ..hooks.calls import for_the_cli, keeping_in_memory
from ..hooks.hook import Hook
from ..mcp.control import McpControl
from ..mcp.servers import McpServer, wire_servers
from ..policy.gate import PolicyGate, kept_in_memory
from ..policy.policy import Policy
from ..process.connection import CLIConnection
from ..process.options import is_sealed
from ..timeouts import Timeouts

if TYPE_CHECKING:
    from ..process.settings import Settings

__all__ = ["Extensions", "check_mode"]

# This variable makes the CLI run bare, with hooks off, wherever it is set: options, environment, or a user's settings
# file.
_BARE = "CLAUDE_CODE_SIMPLE"
_TRUE = frozenset({"1", "true", "yes", "on"})

# Hooks of settings files and plugins are programs that can change the input of a call, or permit it, after the policy
# has decided; and commands in a skill or a slash command run without a call of a hook.
_POLICY_SETTINGS: dict[str, JsonValue] = {"disableAllHooks": True, "disableSkillShellExecution": True}

# The CLI offers these tools to the model as soon as it can ask for permissions.
_TOOLS_THAT_ASK = ("AskUserQuestion", "EnterPlanMode", "ExitPlanMode")


def check_mode(mode: str) -> None:
    """Raise if there is no such permission mode."""
    if mode not in (modes := get_args(PermissionMode)):
        raise ValueError(f"there is no permission mode {mode!r}; there are {', '.join(modes)}")


def _check_together(options: ClaudeAgentOptions, policy: Policy | None) -> None:
    """Raise if the options conflict with hooks or with this policy."""
    is_bare = "bare" in options.extra_args and not is_sealed(options)
    if is_bare or options.env.get(_BARE, "").strip().lower() in _TRUE:
        raise ValueError("in bare mode Claude Code runs no hooks, and so no policy: leave out `bare`, or the hooks")
    if policy is None:
        return
    if options.permission_prompt_tool_name is not None:
        raise ValueError("a policy answers what permission_prompt_tool_name would answer: give only one of them")
    if policy.ask is not None and options.can_use_tool is not None:
        raise ValueError("the policy's `ask` and the option can_use_tool are both asked: give only one of them")


def _hooked(
    options: ClaudeAgentOptions, hooks: Sequence[Hook[Any]], gate: PolicyGate | None, callback_runner: CallbackRunner
) -> ClaudeAgentOptions:
    """Return options with hooks and a policy in them."""
    matchers: dict[str, list[HookMatcher]] = {event: [*given] for event, given in (options.hooks or {}).items()}
    for hook in hooks:
        matchers.setdefault(hook.event, []).append(for_the_cli(hook, callback_runner))
    matchers = {event: [_tamed(event, given, gate) for given in all_given] for event, all_given in matchers.items()}
    if gate is not None:
        matchers.setdefault("PreToolUse", []).insert(0, gate.hook())
        options = replace(options, can_use_tool=gate.can_use_tool)
        if not gate.can_ask:
            named = options.tools if isinstance(options.tools, list) else []
            unwanted = [tool for tool in _TOOLS_THAT_ASK if tool not in named]
            options = replace(options, disallowed_tools=[*options.disallowed_tools, *unwanted])
    elif options.can_use_tool is not None:
        options = replace(options, can_use_tool=_in_memory(options.can_use_tool))
    return replace(options, hooks=cast("dict[HookEvent, list[HookMatcher]]", matchers) or None)


async def _turn_hooks_on(connection: CLIConnection, *, has_policy: bool) -> None:
    """Ensure that hooks run, and only those of a policy where there is one."""
    settings: dict[str, JsonValue] = {"env": {_BARE: "0"}, **(_POLICY_SETTINGS if has_policy else {})}
    try:
        await connection.request("apply_flag_settings", {"settings": settings})
        listing = await connection.request("get_hooks_listing", {})
    except ControlRequestError as error:
        raise HooksDisabledError(f"the CLI cannot say whether it runs them: {error.message}") from error
    policy = listing.get("policy")
    if not isinstance(policy, dict):
        raise HooksDisabledError("the CLI does not say whether it runs them")
    if "bareMode" in listing:
        raise HooksDisabledError("it runs in bare mode")
    if policy.get("disabledByPolicy") or policy.get("managedOnly"):
        raise HooksDisabledError("the managed settings of this machine forbid them")
    if has_policy and not policy.get("allDisabled"):
        raise HooksDisabledError("the hooks of settings files, which could get round the policy, cannot be turned off")


def _tamed(event: str, matcher: HookMatcher, gate: PolicyGate | None) -> HookMatcher:
    callbacks = [keeping_in_memory(event, callback) for callback in matcher.hooks]
    if gate is not None:
        callbacks = [gate.guarded(event, callback) for callback in callbacks]
    return replace(matcher, hooks=callbacks)


def _in_memory(callback: CanUseTool) -> CanUseTool:
    async def can_use_tool(tool: str, input: dict[str, Any], context: ToolPermissionContext) -> PermissionResult:
        return kept_in_memory(await callback(tool, input, context))

    return can_use_tool


class Extensions:
    """The policy, hooks and MCP servers of one session. Created on the loop of its caller.

    Raises:
        ValueError: They conflict with the options, or an MCP server's name or value is invalid.
        TypeError: An object is no hook, no policy or no MCP server.
    """

    def __init__(
        self,
        options: ClaudeAgentOptions,
        *,
        policy: Policy | None = None,
        hooks: Sequence[Hook[Any]] = (),
        mcp_servers: Mapping[str, McpServer] | None = None,
        require_mcp: bool = True,
        timeouts: Timeouts,
    ) -> None:
        if options.permission_mode is not None:
            check_mode(options.permission_mode)
        if not_hooks := [hook for hook in hooks if type(hook) is not Hook]:
            raise TypeError(f"a hook is made by hook() or command_hook(), not {not_hooks[0]!r}")
        self._loop = asyncio.get_running_loop()
        self.callback_runner = CallbackRunner(self._loop)
        """Caller of hooks and permission callbacks."""
        self._require_mcp = require_mcp
        self._has_policy = policy is not None
        self._has_hooks = bool(policy is not None or hooks or options.hooks)
        self._others = options.mcp_servers if isinstance(options.mcp_servers, dict) else {}
        self._keeps = [name for name, server in self._others.items() if server.get("type") == "sdk"]
        self._servers = mcp_servers
        if mcp_servers is not None:
            wire_servers(mcp_servers, taken=self._others.keys())
        # A sealed process is given a server only for its tools, so allow them.
        self._breaks_seal = mcp_servers is not None and is_sealed(options)
        # Both exist when the process runs.
        self.mcp: McpControl
        self.settings: Settings
        gate = None if policy is None else PolicyGate(policy, options.can_use_tool, self.callback_runner, timeouts)
        if self._has_hooks:
            _check_together(options, policy)
            args = {name: value for name, value in options.extra_args.items() if name != "bare"}
            options = replace(options, extra_args=args)
        options = _hooked(options, hooks, gate, self.callback_runner)
        if self._breaks_seal and options.max_turns == 1:
            # The CLI's own loop continues after a tool, which takes a second API call.
            options = replace(options, max_turns=None)
        # Time limit of the CLI for connecting a server, in milliseconds.
        patience = {"MCP_TIMEOUT": str(math.ceil(timeouts.mcp * 1000))}
        self.options = replace(options, env={**patience, **options.env})
        """Options to start the process with."""

    async def serve(
        self,
        servers: Mapping[str, McpServer],
        *,
        require: bool | None = None,
        loop: asyncio.AbstractEventLoop | None,
    ) -> list[McpServerStatus]:
        """Replace the MCP servers, and wait for the new ones; those of this process run on `loop`.

        With `require`, or None as for the first servers, one that is not ready is an error.
        """
        require = self._require_mcp if require is None else require
        checked = wire_servers(servers, taken=self._others.keys())
        with self.settings.changing("mcp_servers", dict(servers)):
            return await self.mcp.replace(checked, require=require, loop=loop)

    async def unpack(self, connection: CLIConnection) -> None:
        """Send the CLI, now that it runs, the settings that are no options."""
        self.callback_runner.mark = connection.mark
        allows_tools = self._breaks_seal and not self._has_policy
        self.mcp = McpControl(connection, keeps=self._keeps, allows_tools=allows_tools)
        if self._has_hooks:
            await _turn_hooks_on(connection, has_policy=self._has_policy)
        self.settings = connection.transport.settings
        if self._servers:
            await self.serve(self._servers, loop=self._loop)
        # This is its initial state, and no change by a caller.
        self.settings.begin()
        connection.transport.observer.side_effects.clear()
