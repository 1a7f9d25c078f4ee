"""Extract usage from a checked record: a request's row, or totals by model.

Knows both dialects, transcripts (`sessionId`) and stream-json (`session_id`), but no files.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import cast

from .amounts import NOTHING, Amounts, Counts
from .fields import TOTAL_COUNTS, Record, checked_usage
from .model_names import canonical_model
from .rows import ADVICE, DECLINED, Row, make_row
from .usage import ADVICES, COMPACTIONS, answering_model, counts_in, message_usage, samplings_in

SYNTHETIC = "<synthetic>"
"""The model in messages that the CLI generates itself."""
LATEST = 253_000_000_000
"""In the year 9987: later times are invalid. Before the calendar end, so that spans and zones do not exceed it."""
_TOOLS = ("tool_use", "server_tool_use")
_NO_FORK: Record = {}


def time_of(timestamp: str | None) -> float | None:
    """Return a timestamp in any precision as seconds since 1970; `None` if it is invalid."""
    if not timestamp:
        return None
    try:
        moment = datetime.fromisoformat(timestamp)
        # Without a zone it is UTC, like all the CLI times.
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
    return seconds if 0 < seconds < LATEST else None


def session_of(record: Record) -> str:
    """Return a record's session."""
    return record.get("sessionId") or record.get("session_id") or ""


def request_row(record: Record, project: str, parent: str) -> Row | None:
    """Return the row for a checked record, or `None` without usage; project and parent are those of earlier records."""
    get = record.get
    message: Record = get("message") or {}
    usage = message_usage(message)
    uuid, message_id = get("uuid") or "", message.get("id") or ""
    request_id = get("requestId") or get("request_id") or ""
    key = message_id or request_id or uuid
    if usage is None or not key:
        return None
    failed = message.get("model") == SYNTHETIC or get("isApiErrorMessage") is True
    session = session_of(record)
    # Since 2.1.326 the CLI marks an answer that it copied into a fork; the SDK's `fork_session()` names the parent.
    origin = get("requestSessionId") or (get("forkedFrom") or _NO_FORK).get("sessionId") or session
    # A transcript is written when an answer is complete; a stream has the counts at the start.
    final = failed or get("sessionId") is not None or bool(message.get("stop_reason"))
    requested = get("requestedModel") or ""
    return make_row(
        (
            uuid or key if failed else key, "error" if failed else "request", time_of(get("timestamp")),
            origin, parent if origin == session else "", get("cwd") or project, *_agent(record),
            "" if usage.model == SYNTHETIC else usage.model,
            *(NOTHING.counts if failed else usage.counts), *usage.traits,
            tuple([name for _, name in tool_calls(message)]) if "content" in message else (),
            () if failed else usage.steps, get("costUSD"), final, message_id, request_id, uuid,
            get("gitBranch") or "", "", get("entrypoint") or "", get("version") or "",
            _requested(requested, message, usage.model) if requested and requested != usage.model else "",
            get("cwd") or project, None,
        )
    )  # fmt: skip


def _requested(requested: str, message: Record, model: str) -> str:
    if canonical_model(requested) == canonical_model(model):
        return ""
    return "" if answering_model(message["usage"].get("iterations") or ()) else requested


def is_sdk_copy(record: Record) -> bool:
    """Return true if the SDK's `fork_session()` copied a record: the CLI's own forks keep its `uuid`."""
    copied = record.get("forkedFrom") or _NO_FORK
    return copied.get("messageUuid", record.get("uuid")) != record.get("uuid")


def _agent(record: Record) -> tuple[str, str]:
    # Older stream-json has no agent id, only the call that started the agent.
    agent = record.get("agentId") or record.get("agent_id") or record.get("parent_tool_use_id") or ""
    return agent, record.get("attributionAgent") or record.get("subagent_type") or ""


def tool_calls(message: Record) -> list[tuple[str, str]]:
    """Return ids and names of the tools that a message calls."""
    content = message.get("content") or ()
    return [(block.get("id") or "", block.get("name") or "") for block in content if block.get("type") in _TOOLS]


def parts_beside(record: Record, row: Row) -> list[Row]:
    """Return the parts of a request that its counts leave out, see `Kind`. Without output, a part is not billed."""
    iterations = record["message"]["usage"]["iterations"]
    declined = samplings_in(iterations) if answering_model(iterations) else []
    declined = [(model or record.get("requestedModel") or "", sampling) for model, sampling in declined]
    declined = [part for part in declined if part[0] and canonical_model(part[0]) != canonical_model(row.model)]
    declined += [(model or row.model, sampling) for model, sampling in samplings_in(iterations, COMPACTIONS)]
    empty = row._replace(tools=(), steps=(), logged_cost=None)
    parts = [
        _part(empty._replace(key=f"{row.key}{DECLINED}{number}", kind="declined", model=model), sampling)
        for number, (model, sampling) in enumerate(declined)
    ]
    # The CLI, too, has no tier and no speed for it.
    empty = empty._replace(kind="advice", tier="", speed="")
    return parts + [
        _part(empty._replace(key=f"{row.key}{ADVICE}{number}", model=model), sampling)
        for number, (model, sampling) in enumerate(samplings_in(iterations, ADVICES))
    ]


def _part(empty: Row, sampling: Record) -> Row:
    counts = counts_in(checked_usage(sampling)[0])
    return empty.with_final(counts if counts[1] else NOTHING.counts)


def event_usage(event: object) -> tuple[str, Counts] | None:
    """Return the id and counts in a stream event; an empty id if it has none."""
    if not isinstance(event, dict):
        return None
    fields = cast("Record", event)
    message = fields.get("message")
    if fields.get("type") == "message_start" and isinstance(message, dict):
        start = cast("Record", message)
        identity, usage = start.get("id"), start.get("usage")
        if isinstance(identity, str) and isinstance(usage, dict):
            return identity, counts_in(checked_usage(cast("Record", usage))[0])
    usage = fields.get("usage")
    if fields.get("type") == "message_delta" and isinstance(usage, dict):
        return "", counts_in(checked_usage(cast("Record", usage))[0])
    return None


def model_totals(usage: Mapping[str, Record]) -> tuple[dict[str, Amounts], bool]:
    """Return amounts by canonical model, from a checked `modelUsage`.

    Also return true if it lists cache writes for an hour separately; CLI 2.1.306 does not.
    """
    totals: dict[str, Amounts] = {}
    splits = True
    for name, fields in usage.items():
        uncached, output, read, written, hour, thinking, searches = [fields.get(field) or 0 for field in TOTAL_COUNTS]
        splits = splits and (not written or "cacheCreationEphemeral1hInputTokens" in fields)
        hour = min(hour, written)
        cost = fields.get("costUSD") or 0.0
        amounts = Amounts(uncached, output, read, written - hour, hour, thinking, searches, cost)
        totals[model] = totals.get(model := canonical_model(name), NOTHING) + amounts
    return totals, splits
