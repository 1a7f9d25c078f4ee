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

from ..api.conversation import Block, HistoryMessage, as_blocks

__all__ = ["APPROVED", "Approvals"]

APPROVED = "This call was approved. It has not run yet: make it again, exactly as it was, and it will."
"""The result by which the caller approves a call."""

# The CLI asks about a call at the moment the model makes it.
_VERDICT_SECONDS = 5.0


class Approvals:
    """The calls in a request that need an approval by `policy`, or wait; the last message has approvals for others.

    Each approval is good for one call.
    """

    def __init__(self, policy: Policy, messages: Iterable[HistoryMessage]) -> None:
        *history, last = messages
        blocks = [block for message in history for block in message.content]
        calls = {block.get("id"): block for block in blocks if block["type"] == "tool_use"}
        results = [block for block in last.content if block["type"] == "tool_result" and block.get("content")]
        approved = [calls.get(result.get("tool_use_id")) for result in results if _text(result) == APPROVED]
        self._policy = policy
        self._approved = Counter((str(call["name"]), _canonical(call["input"])) for call in approved if call)
        self._verdicts: dict[str, asyncio.Future[bool]] = {}

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
            return PermissionResultDeny(message="A sub-agent's call cannot wait for an approval.")
        verdict = self._verdict(context.tool_use_id or "")
        try:
            async with asyncio.timeout(_VERDICT_SECONDS):
                is_approved = await asyncio.shield(verdict)
        except TimeoutError:
            return PermissionResultDeny(message="The call's input changed after its approval; approve the new input.")
        if not is_approved:
            await asyncio.get_running_loop().create_future()  # until the turn ends
        return PermissionResultAllow()

    def _verdict(self, call_id: str) -> asyncio.Future[bool]:
        return self._verdicts.setdefault(call_id, asyncio.get_running_loop().create_future())


def _text(result: Block) -> str:
    return "".join(str(part.get("text")) for part in as_blocks(result["content"], "content"))


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
