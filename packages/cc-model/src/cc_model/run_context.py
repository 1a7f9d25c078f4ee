"""The run that asks the model: the one place that touches a private part of pydantic-ai.

pydantic-ai hands the run's context to `Model.request_stream()` but not to `Model.request()`, and gives nothing public
that tells it. Its own models for durable engines take it from where it is taken here. `tests/test_run_context.py`
notices when that changes.
"""

from dataclasses import replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai._run_context import get_current_run_context
from pydantic_ai.models import Model
from pydantic_ai.usage import RunUsage

__all__ = ["run_context_for"]


def run_context_for(model: Model, given: RunContext[Any] | None = None) -> RunContext[Any]:
    """A context for tools: a copy of that of the agent's run, or one without dependencies outside of a run.

    Args:
        model: The model that is asked.
        given: The context, where pydantic-ai has handed it over; it knows more than the current one does.
    """
    current = given or get_current_run_context()
    if current is None:
        return RunContext(deps=None, model=model, usage=RunUsage())
    # Retries are counted by the step of a run, and the CLI's loop is one step of it.
    return replace(current, retries={})
