"""Collect the records in one file as rows by request, ledgers and problems. The input is records, not bytes."""

import json
from contextlib import suppress
from itertools import islice
from typing import Literal, TypeAlias, cast

from .amounts import Counts
from .archive import ARCHIVED, from_archive
from .extract import (
    LATEST,
    event_usage,
    is_sdk_copy,
    model_totals,
    parts_beside,
    request_row,
    session_of,
    time_of,
    tool_calls,
)
from .fields import Record, checked_record, checked_totals, checked_usage, count
from .identity import is_same_answer, key_beside
from .rows import LABELS, FileScan, Ledger, Problem, Row, empty_scan, make_row
from .usage import Traits, traits_in

Taken: TypeAlias = Literal["request", "whole", "other"]
"""Outcome for a record: a row, nothing yet because all its fields are needed, or neither."""

_TOOLS = Row._fields.index("tools")
_WHOLE = frozenset({"result", "stream_event", "system", "rate_limit_event", "progress", ARCHIVED})
# Newer ones replace older ones: a stream can run for weeks.
_MOST_LIMITS = 1000
# A repeated call stands near the first call.
_MOST_TOOL_IDS = 100
# Records of an answer stand near each other.
_MOST_BACK = 100
# Seconds. Processes and threads write their records a little later than they note the time.
_DISORDER = 0.5
# A request's records may differ in these fields: some lack them.
_FILLED = ("project", "parent", "agent", "agent_type", "request_id", "requested", "folder", *LABELS)
_LIMITS = ("unifiedWindows", "rateLimitType", "utilization", "resetsAt", "status")


class Collector:
    """Collects the records in a file, in order; `scan` returns the result."""

    def __init__(self, path: str, earlier_scan: FileScan | None = None) -> None:
        earlier_scan = earlier_scan or empty_scan(path)
        self.path = path
        self.rows = {row.key: row for row in earlier_scan.rows}
        self.ledgers, self.problems = [*earlier_scan.ledgers], [*earlier_scan.problems]
        self.origins, self.compactions, self.project = (
            {**earlier_scan.origins},
            {**earlier_scan.compactions},
            earlier_scan.project,
        )
        self._version, self._began, self._time = earlier_scan.version, earlier_scan.began, earlier_scan.last
        self._set_back, self._is_sdk_fork = earlier_scan.set_back, earlier_scan.is_sdk_fork
        self._open_keys, self._limits = [*earlier_scan.open_keys], [*earlier_scan.limits]
        self._parent: str = next(reversed(earlier_scan.origins.values()), "")
        self._undated = [at for at, ledger in enumerate(self.ledgers) if ledger.until is None]
        self._tool_ids, self._answering = dict.fromkeys(earlier_scan.tool_ids), dict(earlier_scan.answering)
        self._last_row = earlier_scan.rows[-1] if earlier_scan.rows else None

    def scan(self, *, size: int, offset: int, unfinished: bool) -> FileScan:
        """Return the collected result."""
        return FileScan(
            self.path, list(self.rows.values()), self.ledgers, self.problems, size, offset, unfinished,
            tuple(self._open_keys), self.project, self.origins, self.compactions, self._began, self._time,
            tuple(self._limits), self._version, tuple(self._answering.items()),
            tuple(self._tool_ids)[-_MOST_TOOL_IDS:], self._set_back, self._is_sdk_fork,
        )  # fmt: skip

    def report(self, offset: int, reason: str, *, is_lost: bool) -> None:
        """Report a line's defect."""
        self.problems.append(Problem(self.path, offset, reason, is_lost))

    def take(self, record: Record) -> Taken:
        """Take a checked record if it is a request or the CLI total; return the outcome."""
        self.note_time(record.get("timestamp"))
        kind = record.get("type") or "assistant"
        if kind == "assistant":
            if self._take_request(record):
                return "request"
            return "whole" if _has_usage(record) else "other"
        if kind == "cost-state":
            self._take_state(record)
            return "other"
        return "whole" if kind in _WHOLE or (kind != "user" and _has_usage(record)) else "other"

    def take_whole(self, record: Record, offset: int) -> None:
        """Take a record with any content and all fields."""
        checked, odd = checked_record(record)
        self.note_time(checked.get("timestamp"))
        kind = checked.get("type") or "assistant"
        if kind == "assistant":
            if not self._take_request(checked) and _has_usage(checked):
                self._take_nameless(checked, offset)
            if odd:
                self.report(offset, f"{odd} is not a count", is_lost=False)
        elif kind == "system":
            self.project = checked.get("cwd") or self.project
            # A stream names it once, at the start; a transcript in each record.
            self._version = checked.get("claude_code_version") or self._version
            if checked.get("subtype") == "compact_boundary" and (uuid := checked.get("uuid")):
                self.compactions.setdefault(uuid, self._place())
        elif kind == "result":
            self._take_result(checked, record, offset)
        elif kind == "cost-state":
            self._take_state(checked)
        elif kind == "stream_event":
            self._take_event(checked, record)
        elif kind == "rate_limit_event" and isinstance(limits := record.get("rate_limit_info"), dict):
            self._take_limits(cast("Record", limits))
        elif kind == ARCHIVED:
            self._take_archived(record, offset)
        elif kind == "progress":
            self._take_progress(record, offset)
        elif kind != "user" and _has_usage(checked):
            self.report(offset, f"usage in a record of the unknown type {kind[:40]!r}", is_lost=True)

    def note_time(self, timestamp: str | None) -> None:
        """Note a record's time, for totals that have none."""
        if timestamp:
            self._began = self._began or timestamp
            # The CLI writes all times in one format, which sorts by time.
            if timestamp < self._time and (earlier_time := time_of(self._time)) and (time := time_of(timestamp)):
                self._set_back = self._set_back or time < earlier_time - _DISORDER
            self._time = timestamp

    def _place(self) -> int:
        return len(self.rows) + len(self.compactions)

    def _take_archived(self, record: Record, offset: int) -> None:
        row = from_archive(record)
        if row is None:
            self.report(offset, "a row of an archive that cannot be read", is_lost=True)
        else:
            self.rows[row.key] = row

    def _take_progress(self, record: Record, offset: int) -> None:
        """Take a sub-agent's answer, which older versions note in the parent file."""
        data = record.get("data")
        inner = cast("Record", data).get("message") if isinstance(data, dict) else None
        if isinstance(inner, dict) and cast("Record", inner).get("type") == "assistant":
            agent = cast("Record", data).get("agentId") or record.get("parentToolUseID")
            head_fields = {
                name: record[name] for name in ("sessionId", "cwd", "gitBranch", "version") if name in record
            }
            self.take_whole({"agentId": agent, **head_fields, **cast("Record", inner)}, offset)

    # --- requests

    def add_tool(self, identity: str, name: str) -> None:
        """Add a tool call in the last answer."""
        row = self._last_row
        if row is not None and (not identity or identity not in self._tool_ids):
            self._tool_ids[identity] = None
            self.rows[row.key] = self._last_row = make_row((*row[:_TOOLS], (*row.tools, name), *row[_TOOLS + 1 :]))

    def _take_request(self, record: Record) -> bool:
        row = request_row(record, self.project, self._parent)
        if row is None:
            return False
        earlier = self.rows.get(row.key)
        if earlier is not None or not row.message_id:
            row, earlier = self._identified(row, earlier, record.get("parentUuid"))
        if row.session != session_of(record):
            self.origins[row.key] = self._parent = row.session
            self._is_sdk_fork = is_sdk_copy(record)
        self.project = row.project
        if self._version and not row.version:
            row = row._replace(version=self._version)
        if row.tools:
            row = row._replace(tools=self._new_tools(record["message"]))
        if earlier is None:
            self._open_keys.append(row.key)
            if self._undated and row.time is not None and not row.agent:
                self._close_states(session_of(record), row.time)
        if len(record["message"]["usage"].get("iterations") or ()) > 1:
            self.rows |= {part.key: part for part in parts_beside(record, row)}
        self.rows[row.key] = self._last_row = row if earlier is None else _with_block(earlier, row)
        return True

    def _identified(self, row: Row, earlier: Row | None, parent: str | None) -> tuple[Row, Row | None]:
        """Return a row with its key in this file, and the row of the answer's earlier records."""
        if earlier is None:
            prior = self._last_row
            # Without any id, a block follows the block before it, whose `uuid` the row has.
            if prior and parent and parent == prior.uuid and not prior.message_id and prior.counts == row.counts:
                if not (row.message_id or row.request_id):
                    return row._replace(key=prior.key), prior._replace(uuid=row.uuid)
        elif not is_same_answer(earlier, row):
            key = key_beside(row)
            earlier = self._latest(row.message_id, row) or self.rows.get(key)
            return row._replace(key=earlier.key if earlier else key), earlier
        return row, earlier

    def _latest(self, message_id: str, like: Row | None = None) -> Row | None:
        """Return the last row with a message id, which several answers may have; `like` is about the same answer."""
        for row in islice(reversed(self.rows.values()), _MOST_BACK):
            if row.message_id == message_id and row.kind == "request" and (not like or is_same_answer(row, like)):
                return row
        return None

    def _take_nameless(self, record: Record, offset: int) -> None:
        """Take a request without an id: in a transcript, its position identifies it; a stream repeats it per block."""
        has_position = "sessionId" in record
        if has_position:
            self._take_request(record | {"uuid": f"{self.path}:{offset}"})
        self.report(offset, "a request without an id", is_lost=not has_position)

    def _new_tools(self, message: Record) -> tuple[str, ...]:
        calls = [call for call in tool_calls(message) if not call[0] or call[0] not in self._tool_ids]
        self._tool_ids.update(dict.fromkeys([identity for identity, _ in calls]))
        return tuple([name for _, name in calls])

    def _close_states(self, session: str, time: float) -> None:
        """End the session totals before its next request; sub-agents have no place after a total."""
        for at in self._undated:
            if self.ledgers[at].session == session:
                self.ledgers[at] = self.ledgers[at]._replace(until=time)
        self._undated = [at for at in self._undated if self.ledgers[at].session != session]

    def _take_event(self, checked: Record, record: Record) -> None:
        """Take the final counts, which are in an answer's last event."""
        usage = event_usage(record.get("event"))
        if usage is None:
            return
        thread = checked.get("parent_tool_use_id") or ""
        key, counts = usage
        if key:
            self._answering[thread] = key
            return
        answering = self._answering.get(thread, "")
        row = self._latest(answering) or self.rows.get(answering)
        if row is not None:
            self.rows[row.key] = _with_final(row, counts)

    def _take_limits(self, limits: Record) -> None:
        fields = {name: limits[name] for name in _LIMITS if name in limits}
        with suppress(RecursionError):
            # The record has no time.
            self._limits = [*self._limits[1 - _MOST_LIMITS :], (self._time, json.dumps(fields))]

    # --- the CLI totals

    def _take_result(self, checked: Record, record: Record, offset: int) -> None:
        exact_usage: object = record.get("model_usage_since_last_result")
        has_exact = isinstance(exact_usage, dict)
        if not has_exact and "modelUsage" not in record:
            return  # of an agent, in a workflow's journal
        totals, splits = model_totals(
            checked_totals(cast("object", exact_usage) if has_exact else record.get("modelUsage"))
        )
        self.ledgers.append(
            Ledger(
                "delta" if has_exact else "sum",
                checked.get("uuid") or f"{self.path}:{offset}",
                session_of(checked),
                self.project,
                time_of(checked.get("timestamp")) or (self._last_row.time if self._last_row else None),
                None,
                totals,
                self._place(),
                tuple(self._open_keys),
                count(record.get("num_turns")),
                self._traits() if self._open_keys else _stated_traits(record.get("usage")),
                splits,
            )
        )
        self._open_keys = []

    def _take_state(self, record: Record) -> None:
        session, (totals, splits) = session_of(record), model_totals(record.get("modelUsage") or {})
        self._undated.append(len(self.ledgers))
        self.ledgers.append(
            Ledger(
                "state",
                f"{session}:{record.get('totalDuration')}:{record.get('totalCostUSD')}",
                session,
                self.project,
                self._last_row.time if self._last_row else None,
                None,
                totals,
                self._place(),
                (),
                0,
                self._traits(),
                splits,
                _seconds(record.get("startTime")),
                _seconds(record.get("totalDuration")),
                time_of(self._time),
                self._set_back,
            )
        )
        self._set_back = False

    def _traits(self) -> Traits:
        return (self._last_row.tier, self._last_row.geo, self._last_row.speed) if self._last_row else ("", "", "")


def _seconds(milliseconds: object) -> float | None:
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return None
    return milliseconds / 1000 if 0 <= milliseconds < LATEST * 1000 else None


def _has_usage(record: Record) -> bool:
    message: Record = record.get("message") or {}
    return bool(message.get("usage"))


def _stated_traits(usage: object) -> Traits:
    return traits_in(checked_usage(cast("Record", usage))[0]) if isinstance(usage, dict) else ("", "", "")


def better(known_row: Row, new_row: Row) -> Row:
    """Return the more reliable record for a request: final counts first, then more tokens, then the older record."""
    if known_row.final != new_row.final:
        chosen, spare = (known_row, new_row) if known_row.final else (new_row, known_row)
    else:
        chosen, spare = (new_row, known_row) if new_row.tokens > known_row.tokens else (known_row, new_row)
    more = {name: getattr(chosen, name) or getattr(spare, name) for name in _FILLED}
    return chosen._replace(
        time=min((time for time in (known_row.time, new_row.time) if time is not None), default=None),
        tools=max(chosen.tools, spare.tools, key=len),
        logged_cost=spare.logged_cost if chosen.logged_cost is None else chosen.logged_cost,
        **more,
    )


def _with_block(earlier: Row, row: Row) -> Row:
    """Return a request with another content block."""
    tools = earlier.tools + row.tools
    if earlier.counts == row.counts and earlier.final == row.final:
        return earlier._replace(tools=tools) if row.tools else earlier
    return better(earlier, row)._replace(tools=tools)


def _with_final(row: Row, counts: Counts) -> Row:
    """Return a row with the final counts; counts that only the start has are kept."""
    uncached, output, read, _, _, thinking, searches = map(max, row.counts, counts)
    # The larger sum of cache writes has the lifetimes, too.
    five_minutes, hour = max(row.counts[3:5], counts[3:5], key=sum)
    return row.with_final((uncached, output, read, five_minutes, hour, thinking, searches))
