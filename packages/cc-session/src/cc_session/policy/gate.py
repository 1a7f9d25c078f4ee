"""Policy gate between the CLI and the tools: the two callbacks that each call must pass.

A hook sees every call before it runs, in every permission mode, and "deny" from it overrides all other decisions. It
sends a call that the policy allows or asks about to the permission callback: the CLI respects "ask" in every mode, but
not "allow". There the input is final, so the policy checks the input that the tool really gets. Nothing here raises,
and every failure denies.

The gate also checks other hooks' output: a hook could otherwise change the input after the policy decision, and a
hook on permission requests could answer instead of the permission callback.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from claude_agent_sdk import (
    HookCallback,
    HookContext,
    HookJSONOutput,
    HookMatcher,
    PermissionResult,
    PermissionResultAllow,
    PermissionResultDeny,
    ToolPermissionContext,
)  # fmt: skip

from ..hooks.calls import CallbackRunner, CallerGoneError, denied, for_the_cli
from ..hooks.hook import Hook, HookResult
from ..limits import Timeouts
from .policy import Ask, Policy, Verdict, tool_name_of
from .questions import QUESTION_TOOL, QuestionDesk

logger = logging.getLogger(__name__)

# Few calls are between the hook and the callback. A dropped call is treated as a call that no hook has seen.
_REMEMBERED_CALLS = 10_000

_NO_CALLBACK = "The policy asks about this call, and has no callback that could answer."


@dataclass(slots=True)
class _Call:
    tool: str
    """Tool name in the rules."""
    is_to_ask: bool = False
    """True if a hook decided to ask about it."""
    is_question: bool = False
    """True if it asks the user, who can answer."""
    turn: str | None = None
    """The CLI turn id, if it sends one."""


class PolicyGate:
    """A session's policy, as callbacks for the CLI."""

    def __init__(
        self, policy: Policy, others_ask: Ask | None, runner: CallbackRunner, timeouts: Timeouts, desk: QuestionDesk
    ) -> None:
        self._policy, self._desk = policy, desk
        self._callback_runner = runner
        self._ask = policy.ask or others_ask
        self.can_ask = self._ask is not None
        self._ask_seconds = policy.timeout if policy.timeout is not None else timeouts.permission
        self._seconds = timeouts.hook
        # A policy without conditions is applied at once.
        self._takes_time = any(rule.when is not None for rule in policy.rules)
        self._calls: OrderedDict[tuple[str, str], _Call] = OrderedDict()

    def hook(self) -> HookMatcher:
        """Return the hook that all calls pass."""
        # The hook timeout comes after the verdict's, which denies by itself.
        hook: Hook[Any] = Hook("PreToolUse", self._before_tool, timeout=self._seconds + 1, runs_here=True)
        return for_the_cli(hook, self._callback_runner)

    def guarded(self, event: str, callback: HookCallback) -> HookCallback:
        """Return another hook, limited by the policy."""

        async def guarded(input: Any, tool_use_id: str | None, context: HookContext) -> HookJSONOutput:
            output: Any = await callback(input, tool_use_id, context)
            match event, output:
                case "PreToolUse", {"hookSpecificOutput": {**specific}}:
                    return await self._check_change(input, output, specific)
                case "PermissionRequest", {"hookSpecificOutput": {"decision": {"behavior": "allow", **decision}}}:
                    changed = decision.get("updatedInput") or input["tool_input"]
                    verdict = await self._verdict(input.get("prompt_id"), tool_name_of(input), changed)
                    if verdict.behavior == "deny":
                        return denied(event, verdict.reason)
                    return {} if verdict.behavior == "ask" else output
                case _:
                    return output

        return guarded

    async def can_use_tool(self, tool: str, input: dict[str, Any], context: ToolPermissionContext) -> PermissionResult:
        """Decide on a call, with the input that the tool will get."""
        # A call that no hook has seen may be an MCP tool with a CLI tool name: so the callback is asked.
        call = self._calls.get((context.tool_use_id or "", tool), _Call(tool, is_to_ask=True))
        try:
            self._callback_runner.check(call.turn)
        except CallerGoneError as error:
            return PermissionResultDeny(message=f"This is refused: {error}.")
        verdict = await self._verdict(call.turn, call.tool, input)
        if verdict.behavior == "deny":
            return PermissionResultDeny(message=verdict.reason)
        if call.is_question:
            return await self._desk.permission(input, call.turn)
        if verdict.behavior == "allow" and not call.is_to_ask:
            return PermissionResultAllow()
        if verdict.behavior == "ask":
            context = replace(context, decision_reason=verdict.reason)
        return await self._permission(call, input, context)

    async def _before_tool(self, call: Mapping[str, Any]) -> HookResult:
        record = self._record(call)
        self._callback_runner.note_tool(record.turn, record.tool)
        verdict = await self._verdict(record.turn, record.tool, call["tool_input"])
        if verdict.behavior == "deny":
            return HookResult.deny(verdict.reason)
        record.is_question = record.tool == QUESTION_TOOL and self._desk.can_answer
        if verdict.behavior == "ask" and not (self.can_ask or record.is_question):
            return HookResult.deny(f"{verdict.reason} {_NO_CALLBACK}")
        if verdict.behavior == "pass" and not record.is_question:
            return HookResult.no_opinion()
        # With an input, a question reaches the permission callback also in the mode `dontAsk`.
        same_input = call["tool_input"] if record.tool == QUESTION_TOOL else None
        return HookResult(decision="ask", reason=verdict.reason, updated_input=same_input)

    def _record(self, call: Mapping[str, Any]) -> _Call:
        """Return a call's record; the first hook makes it."""
        key = str(call.get("tool_use_id")), str(call.get("tool_name"))
        record = self._calls.setdefault(key, _Call(""))
        record.tool, record.turn = tool_name_of(call), call.get("prompt_id")
        if len(self._calls) > _REMEMBERED_CALLS:
            self._calls.popitem(last=False)
        return record

    async def _check_change(
        self, call: Mapping[str, Any], output: dict[str, Any], specific: Mapping[str, Any]
    ) -> HookJSONOutput:
        if specific.get("permissionDecision") == "ask":
            self._record(call).is_to_ask = True
        changed = specific.get("updatedInput")
        if changed is not None and specific.get("permissionDecision") != "deny":
            verdict = await self._verdict(call.get("prompt_id"), tool_name_of(call), changed)
            if verdict.behavior == "deny":
                return denied("PreToolUse", verdict.reason)
            if verdict.behavior != "pass":
                specific = {**specific, "permissionDecision": "ask", "permissionDecisionReason": verdict.reason}
        return cast(HookJSONOutput, {**output, "hookSpecificOutput": specific})

    async def _permission(self, call: _Call, input: dict[str, Any], context: ToolPermissionContext) -> PermissionResult:
        tool = call.tool
        if self._ask is None:
            return PermissionResultDeny(message=f"{tool} needs a permission. {_NO_CALLBACK}")
        try:
            async with asyncio.timeout(self._ask_seconds):
                answer = await self._callback_runner.call(call.turn, self._ask, tool, input, context)
            if isinstance(answer, PermissionResultAllow) and answer.updated_input is not None:
                verdict = await self._verdict(call.turn, tool, answer.updated_input)
                if verdict.behavior == "deny":
                    return PermissionResultDeny(message=verdict.reason)
            return in_memory_only(answer)
        except Exception as error:
            logger.error("The permission callback for %s failed", tool, exc_info=error)
            return PermissionResultDeny(message=f"The permission callback for {tool} failed.")

    async def _verdict(self, turn: str | None, tool: str, input: Any) -> Verdict:
        try:
            if not self._takes_time:
                return self._policy.verdict(tool, input)
            async with asyncio.timeout(self._seconds):
                return await self._callback_runner.call(turn, self._policy.verdict, tool, input)
        except Exception as error:
            logger.error("The policy could not be applied to %s", tool, exc_info=error)
            return Verdict("deny", f"The policy of this session could not be applied to {tool}.")


def in_memory_only(answer: object) -> PermissionResult:
    """Return a permission callback answer, with updates for the session only, not for a settings file."""
    match answer:
        case PermissionResultAllow(updated_permissions=updates) if updates is not None:
            return replace(answer, updated_permissions=[replace(update, destination="session") for update in updates])
        case PermissionResultAllow():
            return answer
        case PermissionResultDeny():
            return answer if answer.message else replace(answer, message="This was not permitted.")
        case _:
            raise TypeError(
                f"a permission callback returns PermissionResultAllow or PermissionResultDeny, not {answer!r}"
            )
