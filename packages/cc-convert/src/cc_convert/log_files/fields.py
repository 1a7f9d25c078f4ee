"""The relevant fields in a record, their types, and the conversion of any record to this form.

The decoders accept only records that have this form; all others are cleaned here. So later code can rely on
every field.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias, cast

__all__ = [
    "BLOCK_TEXTS", "COUNTS", "FORK_TEXTS", "MESSAGE_TEXTS", "MOST", "NESTED_COUNTS", "RECORD_TEXTS", "STATE_TEXTS",
    "STATE_VALUES", "TOTAL_COUNTS", "USAGE_TEXTS", "Record", "clean_record", "clean_totals", "clean_usage", "count",
]  # fmt: skip

Record: TypeAlias = dict[str, Any]
"""An object in a log, by field."""

MOST = 10**12
"""More tokens than any request can have. A larger number is a defect, which must not spoil the sums."""

RECORD_TEXTS = (
    "type", "subtype", "sessionId", "session_id", "requestSessionId", "cwd", "timestamp", "uuid", "requestId",
    "request_id", "agentId", "agent_id", "attributionAgent", "subagent_type", "parent_tool_use_id", "gitBranch",
    "entrypoint", "version", "claude_code_version", "requestedModel",
)  # fmt: skip
STATE_TEXTS = ("type", "sessionId", "session_id", "timestamp")
STATE_VALUES = ("totalCostUSD", "totalDuration", "startTime")
TOTAL_COUNTS = (
    "inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens",
    "cacheCreationEphemeral1hInputTokens", "thinkingTokens", "webSearchRequests",
)  # fmt: skip
FORK_TEXTS = ("sessionId",)
MESSAGE_TEXTS = ("id", "model", "stop_reason")
BLOCK_TEXTS = ("type", "name", "id")
COUNTS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
USAGE_TEXTS = ("service_tier", "inference_geo", "speed")
NESTED_COUNTS: Mapping[str, tuple[str, ...]] = {
    "cache_creation": ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"),
    "output_tokens_details": ("thinking_tokens",),
    "server_tool_use": ("web_search_requests",),
}


def count(value: object) -> int:
    """Return a value as a count; 0 if it is not a count."""
    if type(value) is int:
        return value if 0 <= value <= MOST else 0
    if isinstance(value, bool):
        return int(value)
    return int(value) if isinstance(value, float) and 0 <= value <= MOST else 0


def clean_record(record: Record) -> tuple[Record, str | None]:
    """Return a record with valid fields only, and the name of an invalid count, if there is one.

    Unusable and unknown fields are left out.
    """
    clean = _texts(record, RECORD_TEXTS)
    if "timestamp" not in clean and (moment := _from_number(record.get("timestamp"))):
        clean["timestamp"] = moment
    if record.get("isApiErrorMessage") is True:
        clean["isApiErrorMessage"] = True
    if isinstance(forked := record.get("forkedFrom"), dict):
        clean["forkedFrom"] = _texts(cast("Record", forked), FORK_TEXTS)
    cost = record.get("costUSD")
    if isinstance(cost, int | float) and 0 <= cost <= MOST:
        clean["costUSD"] = float(cost)
    message, odd = record.get("message"), None
    if isinstance(message, dict):
        clean["message"], odd = _clean_message(cast("Record", message))
    return clean, odd


def _clean_message(message: Record) -> tuple[Record, str | None]:
    clean = _texts(message, MESSAGE_TEXTS)
    content, usage, odd = message.get("content"), message.get("usage"), None
    if isinstance(content, list):
        blocks = cast("list[object]", content)
        clean["content"] = [_texts(cast("Record", block), BLOCK_TEXTS) for block in blocks if isinstance(block, dict)]
    if isinstance(usage, dict):
        clean["usage"], odd = clean_usage(cast("Record", usage))
    return clean, odd


def clean_usage(usage: Record) -> tuple[Record, str | None]:
    """Return a usage with numbers as counts, and the name of an invalid count, if there is one."""
    clean = _texts(usage, USAGE_TEXTS)
    clean |= {name: count(usage.get(name)) for name in COUNTS}
    odd = next((name for name in COUNTS if usage.get(name) is not None and clean[name] != usage[name]), None)
    for name, counts in NESTED_COUNTS.items():
        nested = usage.get(name)
        if isinstance(nested, dict):
            fields = cast("Record", nested)
            clean[name] = {field: count(fields.get(field)) for field in counts}
    if isinstance(usage.get("iterations"), list):
        clean["iterations"] = usage["iterations"]
    return clean, odd


def clean_totals(usage: object) -> dict[str, Record]:
    """Return any `modelUsage` with numbers as counts and costs."""
    totals: dict[str, Record] = {}
    for model, value in cast("Record", usage).items() if isinstance(usage, dict) else ():
        if isinstance(value, dict):
            fields = cast("Record", value)
            totals[model] = {name: count(fields[name]) for name in TOTAL_COUNTS if name in fields}
            cost = fields.get("costUSD")
            if isinstance(cost, int | float) and 0 <= cost <= MOST:
                totals[model]["costUSD"] = float(cost)
    return totals


def _texts(fields: Record, names: tuple[str, ...]) -> Record:
    return {name: value for name in names if isinstance(value := fields.get(name), str)}


def _from_number(value: object) -> str | None:
    """Return a timestamp from a number, in seconds or in milliseconds."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e14:
        return None
    seconds = value / 1000 if value > 1e11 else value
    return datetime.fromtimestamp(seconds, UTC).isoformat()
