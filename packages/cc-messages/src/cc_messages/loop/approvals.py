"""Calls to Claude Code's own tools that need approval: they end the answer, and can be made again.

The CLI cannot keep a call for next week. So a call that the policy asks about is reported like a call to the caller's
tools, and the turn ends. If it is approved, its result is `APPROVED`; the model reads that and makes the call again,
which then runs. Any process can run it, because the history contains everything it needs.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from claude_agent_sdk import PermissionResult, PermissionResultAllow, PermissionResultDeny, ToolPermissionContext

from cc_session import Policy

from ..api.conversation import HistoryMessage, as_blocks
from ..context.tools import ClaudeCodeTools

__all__ = ["APPROVED", "Approvals"]

APPROVED = "This call was approved. It has not run yet: make it again, exactly as it was, and it will."
"""The result by which the caller approves a call."""

_NO_SUBAGENT = "A sub-agent's call cannot wait for an approval."
_CHANGED = "The call's input changed after its approval; approve the new input."

# The CLI asks about a call at the moment the model makes it.
_VERDICT_SECONDS = 5.0


class Approvals:
    """The calls in a request that need an approval, have it, or wait.

    Args:
        policy: Decides which calls need an approval.
        approved: The approved calls, each good for one call.
    """

    def __init__(self, policy: Policy, approved: Iterable[tuple[str, str]]) -> None:
        self._policy = policy
        self._approved = Counter(approved)
        self._verdicts: dict[str, asyncio.Future[bool]] = {}

    @classmethod
    def of(cls, own_tools: ClaudeCodeTools | None, messages: Iterable[HistoryMessage]) -> "Approvals | None":
        """Return the approvals in a conversation; None if no call can need an approval."""
        if own_tools is None or not own_tools.defers or own_tools.policy is None:
            return None
        return cls(own_tools.policy, _approved_calls(messages))

    def waits(self, call_id: str, tool: str, arguments: Mapping[str, Any]) -> bool:
        """Return true if the model's new call must wait; to be asked once for each call."""
        if self._policy.verdict(tool, arguments).behavior != "ask":
            return False
        key = (tool, _canonical(arguments))
        is_approved = self._approved[key] > 0
        self._approved[key] -= is_approved
        self._verdict(call_id).set_result(is_approved)
        return not is_approved

    async def ask(self, _tool: str, _arguments: Mapping[str, Any], context: ToolPermissionContext) -> PermissionResult:
        """Return the decision about a call that the policy asks about; never, if the call waits for an approval."""
        if context.agent_id is not None:
            return PermissionResultDeny(message=_NO_SUBAGENT)
        verdict = self._verdict(context.tool_use_id or "")
        try:
            async with asyncio.timeout(_VERDICT_SECONDS):
                is_approved = await asyncio.shield(verdict)
        except TimeoutError:
            return PermissionResultDeny(message=_CHANGED)
        if not is_approved:
            await asyncio.get_running_loop().create_future()  # until the turn ends
        return PermissionResultAllow()

    def _verdict(self, call_id: str) -> asyncio.Future[bool]:
        return self._verdicts.setdefault(call_id, asyncio.get_running_loop().create_future())


def _approved_calls(messages: Iterable[HistoryMessage]) -> list[tuple[str, str]]:
    """Return tool name and input for each call that the last message approves."""
    *history, last = messages
    calls = {block.get("id"): block for message in history for block in message.content if block["type"] == "tool_use"}
    approved = [
        calls.get(block.get("tool_use_id"))
        for block in last.content
        if block["type"] == "tool_result" and block.get("content") and _text(block.get("content")) == APPROVED
    ]
    return [(str(call["name"]), _canonical(call["input"])) for call in approved if call is not None]


def _text(content: Any) -> str:
    return "".join(str(block.get("text")) for block in as_blocks(content, "content"))


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
