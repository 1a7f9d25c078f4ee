"""The current run's context and usage: the only uses of private parts of pydantic-ai.

pydantic-ai passes the run's context to `Model.request_stream()` but not to `Model.request()`, and has no public API for
it. The models for durable engines there use the same private part. `tests/test_run_context.py` detects a change.
"""

from dataclasses import replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai._context_size import mark_context_input_tokens
from pydantic_ai._run_context import get_current_run_context
from pydantic_ai._usage_attribution import record_usage
from pydantic_ai._utils import is_text_like_media_type
from pydantic_ai.models import Model
from pydantic_ai.usage import RunUsage

__all__ = ["is_text_like_media_type", "mark_context_input_tokens", "record_usage", "run_context_for"]


def run_context_for(model: Model, run_context: RunContext[Any] | None = None) -> RunContext[Any]:
    """Return a context for tools: a copy of the agent run's context, or outside a run a context without dependencies.

    A `run_context` from pydantic-ai has more data than the current context.
    """
    current = run_context or get_current_run_context()
    if current is None:
        return RunContext(deps=None, model=model, usage=RunUsage())
    # pydantic-ai counts retries in its own loop, and does not see those in the CLI loop.
    return replace(current, retries={})
