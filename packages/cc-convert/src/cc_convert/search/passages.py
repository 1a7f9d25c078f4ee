"""Convert a line in a log to searchable passages with their context."""

from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias, cast, get_args

from pydantic_core import from_json

from ..folding import fold
from ..log_files.decode import decode_line
from ..log_files.events import Event, EventKind, events_of
from ..log_files.extract import session_of, time_of
from ..log_files.fields import Record, checked_record
from ..log_files.titles import noted_title

Role: TypeAlias = Literal["title", "prompt", "answer", "thinking", "call", "result", "error", "unreadable"]
"""Kind of passage. `call` and `result` belong to tools; `unreadable` is a line that is not JSON."""
ROLES: tuple[Role, ...] = get_args(Role)

_ROLES: dict[EventKind, Role] = {
    "prompt": "prompt", "attachment": "prompt", "text": "answer", "thinking": "thinking", "call": "call",
    "result": "result", "error": "error",
}  # fmt: skip


class Context(NamedTuple):
    """A passage's session, machine and settings."""

    session: str
    agent: str
    """The sub-agent id; empty for the main thread."""
    project: str
    branch: str
    host: str
    entrypoint: str
    version: str
    model: str
    """The model, for an answer; empty for other passages."""


class Passage(NamedTuple):
    """A searchable text in a record."""

    role: Role
    text: str
    time: float | None
    """In seconds since 1970."""
    context: Context | None
    """`None` for a line that is not JSON."""
    identity: str
    """The record UUID; forks have the same."""
    tool: str = ""
    """The called tool."""


def small_letters(text: str) -> bytes:
    """Return a text in one form, as UTF-8. A part of the text gives a part of the result."""
    return fold(text).encode("utf-8", "replace")


def passages_of(line: bytes) -> list[Passage]:
    """Return the passages in any line, in order. A record without text gives one empty passage."""
    try:
        # Twice as fast as `decode_line`, and raises for any line that needs repair.
        records = [cast("Record", from_json(line))]
    except ValueError:
        records = []
    if not records or type(records[0]) is not dict:
        records, _, is_lost = decode_line(line)
        if is_lost and not records:
            return [Passage("unreadable", str(line, "utf-8", "replace"), None, None, "")]
    return [passage for record in records for passage in _of_record(record)]


def _of_record(record: Record) -> Iterator[Passage]:
    checked = checked_record(record)[0]
    texts = [checked.get(name) or "" for name in ("agentId", "cwd", "gitBranch", "entrypoint")]
    agent, project, branch, entrypoint = texts
    version = checked.get("version") or checked.get("claude_code_version") or ""
    message: Record = checked.get("message") or {}
    model = message.get("model") or ""
    agent = agent or checked.get("agent_id") or checked.get("parent_tool_use_id") or ""
    context = Context(session_of(checked), agent, project, branch, "", entrypoint, version, model)
    base = Passage("title", noted_title(record), time_of(checked.get("timestamp")), context, checked.get("uuid") or "")
    passages = [
        base._replace(role=_ROLES[event.kind], text=_text(event), tool=event.name if event.kind == "call" else "")
        for event in events_of(record, checked)
        if event.kind in _ROLES
    ]
    yield from passages or [base]


def _text(event: Event) -> str:
    return "\n".join([event.name, *_leaves("", event.input)]) if event.kind == "call" else event.text


def _leaves(name: str, value: object) -> Iterator[str]:
    """Yield the values in a tool input, without JSON's quotes and escapes."""
    waiting: list[tuple[str, object]] = [(name, value)]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, dict):
            waiting += reversed(cast("Record", value).items())
        elif isinstance(value, list):
            waiting += [(name, member) for member in reversed(cast("list[object]", value))]
        else:
            yield f"{name}: {value}" if name else str(value)
