"""What the records of one file come to: rows by request, ledgers, problems. It is fed records and knows no bytes."""

from typing import cast

from .decode import Record
from .extract import count, event_usage, model_totals, odd_count, request_row, session_of, text, time_of, tool_calls
from .rows import NO_COUNTS, Counts, FileScan, Ledger, Problem, Row, add_counts, counts_of

__all__ = ["Collector", "better"]


class Collector:
    """Gathers the records of one file in their order; `scan` gives what came of it."""

    def __init__(self, path: str, before: FileScan | None = None) -> None:
        self.path = path
        self.rows: dict[str, Row] = {}
        self.ledgers: list[Ledger] = []
        self.problems: list[Problem] = []
        self.origins: dict[str, str] = {}
        self.project = ""
        self._open_keys: list[str] = []
        self._parent = ""
        self._undated: list[int] = []
        self._tool_ids: set[str] = set()
        self._answering: dict[str, str] = {}
        self._last: Row | None = None
        if before is not None:
            self._go_on(before)

    def _go_on(self, before: FileScan) -> None:
        self.rows = {row.key: row for row in before.rows}
        self.ledgers, self.problems = [*before.ledgers], [*before.problems]
        self.origins, self.project = {**before.origins}, before.project
        self._open_keys = [*before.open_keys]
        self._parent = next(reversed(self.origins.values()), "")
        self._undated = [at for at, ledger in enumerate(self.ledgers) if ledger.until is None]
        self._last = before.rows[-1] if before.rows else None

    def scan(self, *, size: int, offset: int, unfinished: bool) -> FileScan:
        """What was gathered."""
        return FileScan(
            self.path, list(self.rows.values()), self.ledgers, self.problems, size, offset, unfinished,
            tuple(self._open_keys), self.project, self.origins,
        )  # fmt: skip

    def report(self, offset: int, reason: str, *, lost: bool) -> None:
        """Note that a line is not as it should be."""
        self.problems.append(Problem(self.path, offset, reason, lost))

    def take(self, record: Record, offset: int) -> bool:
        """Take a record of an assistant's message, or one that is whole; return whether it must be given whole."""
        kind = record.get("type", "assistant")
        if kind == "assistant":
            self._take_request(record, offset)
        elif kind in ("result", "cost-state", "stream_event"):
            return True
        elif kind == "system":
            self.project = text(record.get("cwd")) or self.project
        return False

    def take_whole(self, record: Record, offset: int) -> None:
        """Take a record with all its fields."""
        kind = record.get("type", "assistant")
        if kind == "result":
            self._take_result(record, offset)
        elif kind == "cost-state":
            self._take_state(record, offset)
        elif kind == "stream_event":
            self._take_event(record)
        else:
            self.take(record, offset)

    # --- requests

    def _take_request(self, record: Record, offset: int) -> None:
        row = request_row(record, project=self.project, parent=self._parent, agent="")
        if row is None:
            return
        if odd := odd_count(record):
            self.report(offset, f"{odd} is no count", lost=False)
        session = session_of(record)
        if row.session != session:
            self.origins[row.key] = row.session
            self._parent = row.session
        self.project = row.project
        known = self.rows.get(row.key)
        if row.tools or known:
            row = self._with_new_tools(record, row)
        if known is None:
            self._open_keys.append(row.key)
            self._close_states(row)
        self.rows[row.key] = self._last = row if known is None else _with_tools_of(known, row)

    def _with_new_tools(self, record: Record, row: Row) -> Row:
        calls = tool_calls(cast("Record", record["message"]))
        new = [(identity, name) for identity, name in calls if not identity or identity not in self._tool_ids]
        self._tool_ids.update(identity for identity, _ in new)
        return row if len(new) == len(row.tools) else row._replace(tools=tuple(name for _, name in new))

    def _close_states(self, row: Row) -> None:
        if self._undated and row.time is not None:
            for at in self._undated:
                self.ledgers[at] = self.ledgers[at]._replace(until=row.time)
            self._undated = []

    def _take_event(self, record: Record) -> None:
        """The last event of an answer has the final counts."""
        event = record.get("event")
        told = event_usage(cast("Record", event)) if isinstance(event, dict) else None
        if told is None:
            return
        thread = text(record.get("parent_tool_use_id"))
        key, counts = told
        if key:
            self._answering[thread] = key
            return
        key = text(record.get("api_message_id")) or self._answering.get(thread, "")
        row = self.rows.get(key)
        if row is not None:
            self.rows[key] = _with_final(row, counts)

    # --- the CLI's own totals

    def _take_result(self, record: Record, offset: int) -> None:
        uuid = text(record.get("uuid"))
        exact = record.get("model_usage_since_last_result")
        totals = model_totals(exact if isinstance(exact, dict) else record.get("modelUsage"))
        self.ledgers.append(
            Ledger(
                "delta" if isinstance(exact, dict) else "sum",
                uuid or f"{self.path}:{offset}",
                session_of(record),
                self.project,
                time_of(record.get("timestamp")) or (self._last.time if self._last else None),
                None,
                totals,
                {},
                tuple(self._open_keys),
                count(record.get("num_turns")),
                self._traits(),
            )
        )
        self._open_keys = []

    def _take_state(self, record: Record, offset: int) -> None:
        session = session_of(record)
        counted: dict[str, Counts] = {}
        for row in self.rows.values():
            if row.session == session:
                counted[row.model] = add_counts(counted.get(row.model, NO_COUNTS), counts_of(row))
        self._undated.append(len(self.ledgers))
        self.ledgers.append(
            Ledger(
                "state",
                f"{session}:{record.get('totalDuration')}:{record.get('totalCostUSD')}",
                session,
                self.project,
                self._last.time if self._last else time_of(record.get("startTime")),
                None,
                model_totals(record.get("modelUsage")),
                counted,
                (),
                0,
                self._traits(),
            )
        )

    def _traits(self) -> tuple[str, str, str]:
        return (self._last.tier, self._last.geo, self._last.speed) if self._last else ("", "", "")


def better(old: Row, new: Row) -> Row:
    """Of two tellings of one request the one to believe: final counts first, then more tokens, then the older."""
    if old.final != new.final:
        chosen, other = (old, new) if old.final else (new, old)
    else:
        chosen, other = (new, old) if new.tokens > old.tokens else (old, new)
    return chosen._replace(
        time=min((time for time in (old.time, new.time) if time is not None), default=None),
        project=chosen.project or other.project,
        parent=chosen.parent or other.parent,
        agent=chosen.agent or other.agent,
        agent_type=chosen.agent_type or other.agent_type,
        tools=max(chosen.tools, other.tools, key=len),
        logged_cost=other.logged_cost if chosen.logged_cost is None else chosen.logged_cost,
        request_id=chosen.request_id or other.request_id,
    )


def _with_tools_of(known: Row, row: Row) -> Row:
    tools = known.tools + row.tools
    if known[9:16] == row[9:16] and known.final == row.final:
        return known._replace(tools=tools) if row.tools else known
    return better(known, row)._replace(tools=tools)


def _with_final(row: Row, counts: Counts) -> Row:
    """The counts of the end; those that only the start tells stay."""
    fresh, output, read, short, hour, thinking, searches = counts
    written = row.cache_write_5m + row.cache_write_1h
    changed = short + hour > written
    return row._replace(
        input=max(row.input, fresh),
        output=max(row.output, output),
        cache_read=max(row.cache_read, read),
        cache_write_5m=short if changed else row.cache_write_5m,
        cache_write_1h=hour if changed else row.cache_write_1h,
        thinking=max(row.thinking, thinking),
        web_searches=max(row.web_searches, searches),
        final=True,
    )
