"""The agent that workers run with each engine: it looks orders up, and refunds them after an approval."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import shop
from pydantic_ai import Agent, DeferredToolRequests, RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ModelAPIError, ModelQuotaExceededError, ModelRequestRejectedError
from pydantic_ai.models import Model

from cc_model import ClaudeCodeProvider, claude_code

ToolFunction: TypeAlias = Callable[..., Awaitable[str]]

# The engine retries failed requests, so the client does not. The number of processes depends on the machine's memory,
# so each machine has a setting.
provider = ClaudeCodeProvider(pool=int(os.environ.get("CLAUDE_PROCESSES", "4")), max_retries=0)

# Time to kill the worker during a call.
SECONDS = float(os.environ.get("TOOL_SECONDS", "0"))


async def find_order(number: int) -> str:
    """Find an order and the price."""
    shop.note_call("find_order")
    await asyncio.sleep(SECONDS)
    return f"Order {number}: a kettle, 30 euros."


async def refund(ctx: RunContext[None], number: int) -> str:
    """Refund an order."""
    shop.note_call("refund")
    # A call that is repeated on another worker has the same id, so the money is paid back once.
    shop.pay_back(number, key=str(ctx.tool_call_id))
    await asyncio.sleep(SECONDS)
    return f"Order {number} is paid back."


def may_pass(error: BaseException) -> bool:
    """Return whether to retry a failed request: yes for an overloaded API, no for a rejected request."""
    refused = (ModelRequestRejectedError, ModelQuotaExceededError)
    return isinstance(error, ModelAPIError) and not isinstance(error, refused)


def support_agent(
    *durability: AbstractCapability[None],
    as_step: Callable[[ToolFunction], ToolFunction] = lambda tool: tool,
    model: Model | str = "claude-code:sonnet",
) -> Agent[None, str | DeferredToolRequests]:
    """Return the agent, for an engine.

    Args:
        durability: Capability that makes it durable with the engine, if the engine has one.
        as_step: Makes a tool an engine's step, for engines that do not do so by themselves.
        model: Model, for engines that do not accept ids.
    """
    return Agent(
        model,
        name="support",
        deps_type=type(None),
        output_type=[str, DeferredToolRequests],
        tools=[Tool(as_step(find_order)), Tool(as_step(refund), requires_approval=True)],
        capabilities=[claude_code(provider=provider), *durability],
    )
