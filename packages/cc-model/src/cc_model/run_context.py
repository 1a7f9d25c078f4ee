"""Context of the current run: the only use of a private part of pydantic-ai.

pydantic-ai passes the run's context to `Model.request_stream()` but not to `Model.request()`, and has no public API for
it. Its own models for durable engines use the same private part. `tests/test_run_context.py` detects a change.
"""

from dataclasses import replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai._run_context import get_current_run_context
from pydantic_ai.models import Model
from pydantic_ai.usage import RunUsage

__all__ = ["run_context_for"]


def run_context_for(model: Model, given: RunContext[Any] | None = None) -> RunContext[Any]:
    """Return a context for tools: a copy of the agent run's context, or outside of a run one without dependencies.

    Args:
        model: Model of the request.
        given: Context from pydantic-ai, if it passed one; it has more data than the current one.
    """
    current = given or get_current_run_context()
    if current is None:
        return RunContext(deps=None, model=model, usage=RunUsage())
    # Retries are counted per step of a run, and the CLI's loop is one step.
    return replace(current, retries={})
