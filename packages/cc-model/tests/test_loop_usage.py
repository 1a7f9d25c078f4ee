"""Usage of a run in the CLI's loop whose caller leaves while Claude Code reports, in another thread."""

from typing import Any

import pytest
from pydantic_ai import RunContext
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RequestUsage, RunUsage, UsageLimits

from cc_messages import LoopStep
from cc_model.loop_usage import LoopUsage


def message(calls: int) -> dict[str, Any]:
    """Make an API message with the usage of some calls so far."""
    usage = {"input_tokens": 100 * calls, "output_tokens": 10 * calls}
    return {"id": "msg_1", "model": "claude-sonnet-5", "usage": usage}


@pytest.mark.parametrize(
    ("order", "requests"),
    [
        (["report", "step", "end"], 1),
        (["report", "step", "report", "end"], 1),
        (["report", "end", "step"], 1),
        (["step", "end"], 1),
        (["report", "step", "report of the next", "end"], 2),
    ],
)
def test_a_call_counts_once_whenever_the_caller_leaves(order: list[str], requests: int) -> None:
    """IPC-P-57."""
    usage = RunUsage()
    loop = LoopUsage(RunContext(deps=None, model=TestModel(), usage=usage), "https://api.anthropic.com")
    counts = RequestUsage(input_tokens=100, output_tokens=10)
    response = ModelResponse([TextPart("Well.")], usage=counts, model_name="claude-sonnet-5")
    for event in order:
        match event:
            case "step":
                loop.take_step(LoopStep(message(1), 1, is_last=False))
            case "end":
                loop.end(response, is_broken=True)
            case _:
                loop.take_counts(message(2 if "next" in event else 1))
    usage.requests += 1  # as pydantic-ai counts a response that is broken off
    usage.incr(response.usage)
    assert (usage.requests, usage.input_tokens, usage.output_tokens) == (requests, 100 * requests, 10 * requests)


def test_a_limit_prevents_the_tools_of_a_caller_who_has_left() -> None:
    """IPC-P-57."""
    limits = UsageLimits(per_request_input_tokens_limit=99)
    loop = LoopUsage(RunContext(deps=None, model=TestModel(), usage=RunUsage(), usage_limits=limits), "")
    loop.end(ModelResponse([]), is_broken=True)
    with pytest.raises(UsageLimitExceeded, match="99"):
        loop.take_step(LoopStep(message(1), 1, is_last=False))
