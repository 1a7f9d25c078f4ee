"""Options with hooks and a policy in them, and a CLI that heeds them.

Hooks that a CLI does not run are worse than none, because somebody relies on them. So what turns them off in silence is
refused, or turned off itself, and whether they are on is asked of the CLI when it runs.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast, get_args

from claude_agent_sdk import (
    CanUseTool,
    ClaudeAgentOptions,
    HookMatcher,
    PermissionMode,
    PermissionResult,
    ToolPermissionContext,
)
from claude_agent_sdk.types import HookEvent

from cc_types import ControlRequestError, JsonValue

from ..errors import HooksDisabledError
from ..hooks.callbacks import Callers
from ..hooks.calls import for_the_cli, keeping_in_memory
from ..hooks.hook import Hook
from ..policy.gate import PolicyGate, kept_in_memory
from ..policy.policy import Policy
from ..process.connection import Connection
from ..process.options import is_sealed

__all__ = ["check_mode", "check_together", "hooked", "turn_hooks_on", "without_bare"]

# By this variable the CLI runs bare, with hooks off, whoever has set it: the options, the environment, or a settings
# file of the user's.
_BARE = "CLAUDE_CODE_SIMPLE"
_TRUE = frozenset({"1", "true", "yes", "on"})

# Hooks of settings files and plugins are programs that can change the input of a call, or permit it, after the policy
# has spoken; and the commands in a skill or a slash command run without a hook being asked.
_POLICY_SETTINGS: dict[str, JsonValue] = {"disableAllHooks": True, "disableSkillShellExecution": True}

# The CLI offers them to the model as soon as somebody can be asked.
_TOOLS_THAT_ASK = ("AskUserQuestion", "EnterPlanMode", "ExitPlanMode")


def check_mode(options: ClaudeAgentOptions) -> None:
    """Raise if there is no such permission mode.

    Raises:
        ValueError: There is not.
    """
    modes = get_args(PermissionMode)
    if options.permission_mode not in (None, *modes):
        raise ValueError(f"there is no permission mode {options.permission_mode!r}, only {', '.join(modes)}")


def check_together(options: ClaudeAgentOptions, policy: Policy | None) -> None:
    """Raise if the options cannot be had with hooks or with this policy.

    Raises:
        ValueError: They cannot.
    """
    is_bare = "bare" in options.extra_args and not is_sealed(options)
    if is_bare or options.env.get(_BARE, "").strip().lower() in _TRUE:
        raise ValueError("in bare mode Claude Code runs no hooks, and so no policy: leave out `bare`, or the hooks")
    if policy is None:
        return
    if options.permission_prompt_tool_name is not None:
        raise ValueError("a policy answers what permission_prompt_tool_name would answer: give only one of them")
    if policy.ask is not None and options.can_use_tool is not None:
        raise ValueError("the policy's `ask` and the option can_use_tool are both asked: give only one of them")


def without_bare(options: ClaudeAgentOptions) -> ClaudeAgentOptions:
    """Return options that do not run bare."""
    return replace(options, extra_args={name: value for name, value in options.extra_args.items() if name != "bare"})


def hooked(
    options: ClaudeAgentOptions, hooks: Sequence[Hook[Any]], gate: PolicyGate | None, callers: Callers
) -> ClaudeAgentOptions:
    """Return options with hooks and a policy in them."""
    matchers: dict[str, list[HookMatcher]] = {event: [*given] for event, given in (options.hooks or {}).items()}
    for hook in hooks:
        matchers.setdefault(hook.event, []).append(for_the_cli(hook, callers))
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


async def turn_hooks_on(connection: Connection, *, has_policy: bool) -> None:
    """See to it that hooks run, and those of a policy alone where there is one.

    Raises:
        HooksDisabledError: The CLI would not run them.
    """
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
