"""OpenTelemetry spans for turns, by the conventions for generative AI. Without a tracer provider nothing happens."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from claude_agent_sdk import AssistantMessage
from opentelemetry.trace import StatusCode, get_tracer

from .turn import Turn

__all__ = ["turn_span"]

_TRACER = get_tracer("cc_session")


@contextmanager
def turn_span(turn: Callable[[], Turn | None]) -> Generator[None]:
    """Open a span for a turn.

    Args:
        turn: Returns the turn at the end, if it was read.
    """
    span = _TRACER.start_span("invoke_agent Claude Code")
    try:
        yield
    except BaseException as error:
        span.set_attribute("error.type", type(error).__name__)
        span.set_status(StatusCode.ERROR)
        raise
    finally:
        if span.is_recording():
            span.set_attributes(_attributes(turn()))
        span.end()


def _attributes(turn: Turn | None) -> dict[str, str | int | float]:
    attributes: dict[str, str | int | float] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "claude-code",
        "gen_ai.agent.name": "Claude Code",
    }
    if turn is None:
        return attributes
    usage = turn.usage
    read, written = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
    models = [message.model for message in turn.messages if isinstance(message, AssistantMessage)]
    return attributes | {
        **({"gen_ai.response.model": models[0]} if models else {}),
        "gen_ai.conversation.id": turn.session_id,
        "gen_ai.usage.input_tokens": usage.input_tokens + read + written,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": read,
        "gen_ai.usage.cache_creation.input_tokens": written,
        "operation.cost": turn.cost_usd,
    }
