"""One decoded record into what counts of it: a row, or a ledger of the CLI's own totals.

Knows the two dialects, that of transcripts (`sessionId`) and that of stream-json (`session_id`), and nothing of files.
Any value may stand in any field; what is no count is 0 and named.
"""

from datetime import datetime, timezone
from typing import Any, cast

from .decode import Record
from .rows import Counts, Row

__all__ = ["count", "event_usage", "model_totals", "odd_count", "request_row", "session_of", "text", "time_of", "tool_calls"]

# More tokens than any request can have; a larger number is damage, and sums shall survive it.
_MOST = 10**12
SYNTHETIC = "<synthetic>"
_NAMES = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def count(value: object) -> int:
    """A count, whatever stands in its place; what is none is 0."""
    if type(value) is int:
        return value if 0 <= value <= _MOST else 0
    if isinstance(value, bool):
        return int(value)
    return int(value) if isinstance(value, float) and 0 <= value <= _MOST else 0


def text(value: object) -> str:
    """A text; empty for anything else."""
    return value if isinstance(value, str) else ""


def time_of(value: object) -> float | None:
    """Seconds since 1970 of a timestamp in a log, whatever its precision."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return None
        # Without a zone it is UTC, as all of the CLI's are.
        return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()
    if isinstance(value, int | float) and 0 < value < 1e14:
        return value / 1000 if value > 1e11 else float(value)
    return None


def session_of(record: Record) -> str:
    """The session that a record stands in."""
    return text(record.get("sessionId")) or text(record.get("session_id"))


def request_row(record: Record, *, project: str, parent: str, agent: str) -> Row | None:
    """The row of a record of an assistant's message; `None` if it tells no usage and no error.

    Args:
        record: The record.
        project: The folder to take where the record names none.
        parent: The session that this one came from.
        agent: The sub-agent to take where the record names none.
    """
    message = record.get("message")
    if not isinstance(message, dict) or record.get("type", "assistant") != "assistant":
        return None
    message = cast("Record", message)
    usage = message.get("usage")
    if not isinstance(usage, dict):
        return None
    uuid, message_id = text(record.get("uuid")), text(message.get("id"))
    request_id = text(record.get("requestId")) or text(record.get("request_id"))
    key = message_id or request_id or uuid
    if not key:
        return None
    model, session = text(message.get("model")), session_of(record)
    origin = text(record.get("requestSessionId")) or session
    failed = model == SYNTHETIC or record.get("isApiErrorMessage") is True
    streamed = "sessionId" not in record
    numbers, tier, geo, speed, steps = _usage(cast("Record", usage))
    logged = record.get("costUSD")
    return Row(
        key if not failed else (uuid or key),
        "error" if failed else "request",
        time_of(record.get("timestamp")),
        origin,
        parent if origin == session else "",
        text(record.get("cwd")) or project,
        text(record.get("agentId")) or text(record.get("agent_id")) or _agent(record) or agent,
        text(record.get("attributionAgent")) or text(record.get("subagent_type")),
        model,
        *numbers,
        tier,
        geo,
        speed,
        tuple(name for _, name in tool_calls(message)),
        steps,
        float(logged) if isinstance(logged, int | float) and 0 <= logged < _MOST else None,
        failed or not streamed or text(message.get("stop_reason")) != "",
        message_id,
        request_id,
        uuid,
    )


def _agent(record: Record) -> str:
    # Before stream-json told the agent's id, it told the call that started the agent.
    return text(record.get("parent_tool_use_id"))


def tool_calls(message: Record) -> list[tuple[str, str]]:
    """The ids and names of the tools that a message calls."""
    content = message.get("content")
    if not isinstance(content, list):
        return []
    calls: list[tuple[str, str]] = []
    for block in cast("list[object]", content):
        if isinstance(block, dict):
            fields = cast("Record", block)
            if fields.get("type") in ("tool_use", "server_tool_use"):
                calls.append((text(fields.get("id")), text(fields.get("name"))))
    return calls


def _usage(usage: Record) -> tuple[Counts, str, str, str, tuple[Any, ...]]:
    numbers = _counts(usage)
    iterations = usage.get("iterations")
    steps: tuple[Any, ...] = ()
    if isinstance(iterations, list) and len(cast("list[object]", iterations)) > 1:
        steps = _steps(cast("list[object]", iterations), numbers)
    return (
        numbers, text(usage.get("service_tier")), text(usage.get("inference_geo")), text(usage.get("speed")), steps,
    )  # fmt: skip


def _counts(usage: Record) -> Counts:
    written = count(usage.get("cache_creation_input_tokens"))
    split, details, server = (usage.get(name) for name in ("cache_creation", "output_tokens_details", "server_tool_use"))
    hour = 0
    if isinstance(split, dict):
        parts = cast("Record", split)
        hour = count(parts.get("ephemeral_1h_input_tokens"))
        # The total leads, as it does for the CLI; without one, the parts are all there is.
        written = written or hour + count(parts.get("ephemeral_5m_input_tokens"))
        hour = min(hour, written)
    return (
        count(usage.get("input_tokens")),
        count(usage.get("output_tokens")),
        count(usage.get("cache_read_input_tokens")),
        written - hour,
        hour,
        count(cast("Record", details).get("thinking_tokens")) if isinstance(details, dict) else 0,
        count(cast("Record", server).get("web_search_requests")) if isinstance(server, dict) else 0,
    )


def _steps(iterations: list[object], whole: Counts) -> tuple[Any, ...]:
    """The samplings of one request, if they add up to it."""
    messages = [cast("Record", one) for one in iterations if isinstance(one, dict)]
    steps = [_counts(one)[:5] for one in messages if one.get("type") == "message"]
    if len(steps) < 2 or [sum(column) for column in zip(*steps, strict=True)][:3] != list(whole[:3]):
        return ()
    return tuple(steps)


def event_usage(event: Record) -> tuple[str, Counts] | None:
    """The id and the counts that an event of the API's stream tells; the id is empty where it tells none."""
    message = event.get("message")
    if event.get("type") == "message_start" and isinstance(message, dict):
        fields = cast("Record", message)
        usage = fields.get("usage")
        return (text(fields.get("id")), _counts(cast("Record", usage))) if isinstance(usage, dict) else None
    usage = event.get("usage")
    if event.get("type") == "message_delta" and isinstance(usage, dict):
        return "", _counts(cast("Record", usage))
    return None


def model_totals(usage: object) -> dict[str, tuple[Counts, float]]:
    """Counts and cost by model, from a `modelUsage`."""
    if not isinstance(usage, dict):
        return {}
    totals: dict[str, tuple[Counts, float]] = {}
    for model, fields in cast("dict[str, object]", usage).items():
        if isinstance(fields, dict):
            totals[model] = _total(cast("Record", fields))
    return totals


def _total(fields: Record) -> tuple[Counts, float]:
    written = count(fields.get("cacheCreationInputTokens"))
    hour = min(written, count(fields.get("cacheCreationEphemeral1hInputTokens")))
    cost = fields.get("costUSD")
    numbers = (
        count(fields.get("inputTokens")),
        count(fields.get("outputTokens")),
        count(fields.get("cacheReadInputTokens")),
        written - hour,
        hour,
        count(fields.get("thinkingTokens")),
        count(fields.get("webSearchRequests")),
    )
    return numbers, float(cost) if isinstance(cost, int | float) and 0 <= cost < _MOST else 0.0


def odd_count(record: Record) -> str | None:
    """The name of a count that is none, in the usage of a message."""
    usage = cast("Record", cast("Record", record["message"])["usage"])
    for name in _NAMES:
        value = usage.get(name)
        if value is not None and (type(value) is not int or not 0 <= value <= _MOST):
            return name
    return None
