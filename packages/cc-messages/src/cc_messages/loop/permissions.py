"""Permission questions of Claude Code's own tools, passed on to the request that they belong to."""

from collections.abc import Awaitable
from typing import Any

from claude_agent_sdk import PermissionResult, ToolPermissionContext

from cc_session import Ask, Policy

from ..context.claude_code_tools import ClaudeCodeTools
from ..context.request_context import RequestContext
from .approvals import Approvals
from .turn_calls import TurnCalls

__all__ = ["PermissionAsker"]

_ENDED = "the request that the call belongs to has ended"


class PermissionAsker:
    """Asks the current request's caller for permissions."""

    def __init__(self) -> None:
        self._turn: tuple[TurnCalls, RequestContext, Approvals | None] | None = None

    def bind(self, calls: TurnCalls, context: RequestContext, approvals: Approvals | None) -> None:
        """Ask about a turn's calls in `context`, or by `approvals`, until `unbind()`."""
        self._turn = calls, context, approvals

    def unbind(self) -> None:
        """Deny all later calls."""
        self._turn = None

    def policy(self, own_tools: ClaudeCodeTools) -> Policy | None:
        """Return the tools' policy, which asks in the current caller's event loop, or by `Approvals`."""
        policy = own_tools.policy
        if policy is None or (policy.ask is None and not own_tools.defers):
            return policy
        return Policy(policy.rules, default=policy.default, ask=self._ask(policy.ask), timeout=policy.timeout)

    def _ask(self, ask: Ask | None) -> Ask:
        async def answer(tool: str, arguments: dict[str, Any], context: ToolPermissionContext) -> PermissionResult:
            if self._turn is None:
                raise RuntimeError(_ENDED)
            calls, request, approvals = self._turn
            if not await calls.has(context.tool_use_id):
                raise RuntimeError(_ENDED)
            if approvals is not None:
                return await approvals.ask(tool, arguments, context)
            assert ask is not None  # noqa: S101  # a policy without it asks by `approvals`
            return await request.there(_asked(ask, tool, arguments, context))

        return answer


async def _asked(ask: Ask, tool: str, arguments: dict[str, Any], context: ToolPermissionContext) -> PermissionResult:
    answer = ask(tool, arguments, context)
    return await answer if isinstance(answer, Awaitable) else answer
