"""A policy between the CLI and its tools: the two callbacks through which each call must pass.

A hook sees every call before it runs, in every permission mode, and of everything that can speak about a call its
"deny" wins. A call that the policy allows, or has asked about, it sends on to the permission callback: "ask" is heeded
in every mode, where "allow" is not, and there the input is final, so the policy is applied to what the tool really
gets. Nothing here raises, and whatever goes wrong denies.

What other hooks can do to a call is looked at as well: one that changes the input could otherwise make another call of
it after the policy has spoken, and one on permission requests could answer in the place of who is asked.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from claude_agent_sdk import (
    ClaudeAgentOptions,
    HookCallback,
    HookContext,
    HookJSONOutput,
    HookMatcher,
    PermissionResult,
    PermissionResultAllow,
    PermissionResultDeny,
    PermissionUpdate,
    ToolPermissionContext,
)

from ..hooks.callbacks import Callers, in_thread
from ..hooks.calls import denied, for_the_cli
from ..hooks.hook import Hook, HookResult
from ..timeouts import Timeouts
from .policy import Ask, Policy, Verdict
from .rules import tool_name_of

__all__ = ["PolicyGate", "kept_in_memory", "without_warnings"]

logger = logging.getLogger(__name__)

# Calls are few between the hook and the callback. What has fallen out is treated as a call that no hook has seen.
_REMEMBERED_CALLS = 10_000

_NOBODY_TO_ASK = "There is nobody who could be asked about it."


@dataclass(slots=True)
class _Call:
    name: str
    """The name under which rules know its tool."""
    is_to_ask: bool = False
    """Whether a hook wants it to be asked about."""


class PolicyGate:
    """The policy of one session, as the CLI meets it."""

    def __init__(self, policy: Policy, others_ask: Ask | None, callers: Callers, timeouts: Timeouts) -> None:
        self._policy = policy
        self._callers = callers
        self._ask = policy.ask or others_ask
        self._ask_seconds = policy.timeout if policy.timeout is not None else timeouts.permission
        self._seconds = timeouts.hook
        # A policy without conditions is applied at once.
        self._takes_time = any(rule.when is not None for rule in policy.rules)
        self._calls: OrderedDict[tuple[str, str], _Call] = OrderedDict()

    @property
    def can_ask(self) -> bool:
        """Whether there is somebody to ask."""
        return self._ask is not None

    def hook(self) -> HookMatcher:
        """Return the hook that all calls pass."""
        # Its own deadline comes after that of the verdict, which denies by itself.
        hook: Hook[Any] = Hook("PreToolUse", self._before_tool, timeout=self._seconds + 1, runs_here=True)
        return for_the_cli(hook, self._callers)

    def guarded(self, event: str, callback: HookCallback) -> HookCallback:
        """Return another hook as it may speak beside the policy."""
        look = {"PreToolUse": self._look_at_change, "PermissionRequest": self._look_at_permission}.get(event)
        if look is None:
            return callback

        async def guarded(input: Any, tool_use_id: str | None, context: HookContext) -> HookJSONOutput:
            output = cast("dict[str, Any]", await callback(input, tool_use_id, context))
            match output:
                case {"hookSpecificOutput": {**specific}}:
                    return await look(input, output, specific)
                case _:
                    return cast(HookJSONOutput, output)

        return guarded

    async def can_use_tool(
        self,
        tool: str,
        input: dict[str, Any],
        context: ToolPermissionContext,
    ) -> PermissionResult:
        """Decide about a call, with the input that the tool will get."""
        # One that no hook has seen may be of an MCP server, under the name of a tool of the CLI: it is asked about.
        call = self._calls.get((context.tool_use_id or "", tool), _Call(tool, is_to_ask=True))
        verdict = await self._verdict(call.name, input)
        if verdict.behavior == "deny":
            return PermissionResultDeny(message=verdict.reason)
        if verdict.behavior == "allow" and not call.is_to_ask:
            return PermissionResultAllow()
        if verdict.behavior == "ask":
            context = replace(context, decision_reason=verdict.reason)
        return await self._asked(call.name, input, context)

    async def _before_tool(self, call: Mapping[str, Any]) -> HookResult:
        verdict = await self._verdict(self._remembered(call).name, call["tool_input"])
        if verdict.behavior == "deny":
            return HookResult.deny(verdict.reason)
        if verdict.behavior == "ask" and not self.can_ask:
            return HookResult.deny(f"{verdict.reason} {_NOBODY_TO_ASK}")
        return HookResult.no_opinion() if verdict.behavior == "pass" else HookResult.ask(verdict.reason)

    def _remembered(self, call: Mapping[str, Any]) -> "_Call":
        """What is known of a call, from its first hook on."""
        key = str(call.get("tool_use_id")), str(call.get("tool_name"))
        known = self._calls.setdefault(key, _Call(""))
        known.name = tool_name_of(call)
        if len(self._calls) > _REMEMBERED_CALLS:
            self._calls.popitem(last=False)
        return known

    async def _look_at_change(
        self, call: Mapping[str, Any], output: dict[str, Any], specific: Mapping[str, Any]
    ) -> HookJSONOutput:
        if specific.get("permissionDecision") == "ask":
            self._remembered(call).is_to_ask = True
        changed = specific.get("updatedInput")
        if changed is not None and specific.get("permissionDecision") != "deny":
            verdict = await self._verdict(tool_name_of(call), changed)
            if verdict.behavior == "deny":
                return denied("PreToolUse", verdict.reason)
            if verdict.behavior != "pass":
                specific = {**specific, "permissionDecision": "ask", "permissionDecisionReason": verdict.reason}
        return cast(HookJSONOutput, {**output, "hookSpecificOutput": specific})

    async def _look_at_permission(
        self, call: Mapping[str, Any], output: dict[str, Any], specific: Mapping[str, Any]
    ) -> HookJSONOutput:
        decision = specific.get("decision")
        if not isinstance(decision, Mapping):
            return cast(HookJSONOutput, output)
        answer = cast("Mapping[str, Any]", decision)
        if answer.get("behavior") == "allow":
            verdict = await self._verdict(tool_name_of(call), answer.get("updatedInput") or call["tool_input"])
            if verdict.behavior == "deny":
                return denied("PermissionRequest", verdict.reason)
            if verdict.behavior == "ask":
                return {}
        return cast(HookJSONOutput, output)

    async def _asked(self, tool: str, input: dict[str, Any], context: ToolPermissionContext) -> PermissionResult:
        if self._ask is None:
            return PermissionResultDeny(message=f"{tool} needs a permission. {_NOBODY_TO_ASK}")
        try:
            async with asyncio.timeout(self._ask_seconds):
                answer = await self._callers.call(self._ask, tool, input, context)
            if isinstance(answer, PermissionResultAllow) and answer.updated_input is not None:
                verdict = await self._verdict(tool, answer.updated_input)
                if verdict.behavior == "deny":
                    return PermissionResultDeny(message=verdict.reason)
            return kept_in_memory(answer)
        except Exception as error:
            logger.error("The permission callback failed about %s", tool, exc_info=error)
            return PermissionResultDeny(message=f"Who was asked about {tool} did not answer.")

    async def _verdict(self, tool: str, input: Any) -> Verdict:
        try:
            if not self._takes_time:
                return self._policy.verdict(tool, input)
            async with asyncio.timeout(self._seconds):
                return await in_thread(self._policy.verdict, tool, input)
        except Exception as error:
            logger.error("The policy could not be applied to %s", tool, exc_info=error)
            return Verdict("deny", f"The policy of this session could not be applied to {tool}.")


def kept_in_memory(answer: object) -> PermissionResult:
    """Return what a permission callback answered, with nothing in it that would be written to a settings file.

    Raises:
        TypeError: It is no answer.
    """
    match answer:
        case PermissionResultAllow(updated_permissions=list(updates)):
            return replace(answer, updated_permissions=[_in_memory(update) for update in updates])
        case PermissionResultAllow():
            return answer
        case PermissionResultDeny():
            return answer if answer.message else replace(answer, message="This was not permitted.")
        case _:
            raise TypeError(
                f"a permission callback returns PermissionResultAllow or PermissionResultDeny, not {answer!r}"
            )


def _in_memory(update: PermissionUpdate) -> PermissionUpdate:
    return replace(update, destination="session")


def without_warnings(options: ClaudeAgentOptions) -> ClaudeAgentOptions:
    """Return options for the SDK's client, which warns of permission callbacks that the CLI would pass by.

    That of a policy it does not, since a hook sends it there. The client does nothing else with what is taken out.
    """
    if not isinstance(getattr(options.can_use_tool, "__self__", None), PolicyGate):
        return options
    skills = None if options.skills == "all" else options.skills
    return replace(options, permission_mode=None, allowed_tools=[], skills=skills)
