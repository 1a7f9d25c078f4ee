"""A session's events in order: prompts, answers, tool calls with their results, compactions.

`scan` looks for usage only; this module decodes every line, for HTML pages and the durations of tool calls.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Literal, NamedTuple, TypeAlias, cast

from .decode import decode_line
from .extract import SYNTHETIC, session_of, time_of
from .fields import Record, checked_record
from .sources import open_log
from .streams import DamagedLogError, lines_of

EventKind: TypeAlias = Literal["prompt", "attachment", "text", "thinking", "call", "result", "compaction", "error"]
"""Kind of an event. A `compaction` replaces a conversation by its summary, which is an `attachment`, like a file that a
prompt names."""
_KIND_NAMES: dict[EventKind, str] = {
    "prompt": "User", "attachment": "Attachment", "text": "Claude", "thinking": "Thinking", "call": "Tool call",
    "result": "Tool result", "compaction": "Compaction", "error": "Error",
}  # fmt: skip

# Attachments in which the user tells the model something; others are Claude Code notes.
_ATTACHMENTS = frozenset({"directory", "edited_text_file", "file", "mcp_resource", "selected_lines_in_ide"})
_TEXTS = ("text", "content", "stdout", "stderr", "file", "snippet", "prompt", "title", "source", "url")


class Event(NamedTuple):
    """An event in a session."""

    kind: EventKind
    time: float | None
    """In seconds since 1970."""
    session: str
    agent: str
    """The sub-agent id; empty for the main thread."""
    text: str
    """The text, the call input, or the result, as a text."""
    name: str = ""
    """The called tool, the answering model, or the kind of attachment."""
    identity: str = ""
    """The id of the tool call, or of the message."""
    failed: bool = False
    """True if a tool result is an error."""
    tokens: int = 0
    """Size of the model context: at an answer, or before a compaction."""
    input: object = None
    """The tool call input, any JSON value."""
    message_id: str = ""
    """The id of the message with the tool call."""
    rewound: bool = False
    """True if the user went back to before it, so that the model no longer knows it."""


def heading_of(event: Event) -> str:
    """Return the heading in transcripts."""
    notes = [note for note, holds in (("failed", event.failed), ("rewound", event.rewound)) if holds]
    return _KIND_NAMES[event.kind] + (f" ({', '.join(notes)})" if notes else "")


def read_events(path: str) -> Iterator[Event]:
    """Yield a log's events, in order. Unreadable lines are skipped; reading the rows reports them."""
    keys: set[int] = set()
    rewound = _rewound(path)
    for record in _records(path):
        was_left = text_or_empty(record.get("uuid")) in rewound
        for event in events_of(record):
            # A fork or a resumed stream repeats events.
            key = hash((event.kind, event.identity, event.text))
            if event.kind in ("call", "result", "text", "thinking") and key in keys:
                continue
            keys.add(key)
            yield event._replace(rewound=True) if was_left else event


def _records(path: str) -> Iterator[Record]:
    with open_log(path) as stream, suppress(DamagedLogError):
        for line in lines_of(stream):
            yield from decode_line(line).records


def _rewound(path: str) -> set[str]:
    """Return the ids of the records after which the user went back: a later prompt has the same parent."""
    parents: dict[str, str] = {}
    prompts: list[str] = []
    for record in _records(path):
        uuid = text_or_empty(record.get("uuid"))
        if uuid and record.get("isSidechain") is not True and uuid not in parents:
            parents[uuid] = text_or_empty(record.get("parentUuid") or record.get("logicalParentUuid"))
            if any(event.kind == "prompt" for event in events_of(record)):
                prompts.append(uuid)
    kept, uuid = set[str](), next(reversed(parents), "")
    while uuid in parents and uuid not in kept:
        kept.add(uuid)
        uuid = parents[uuid]
    begun_again = {parents[uuid] for uuid in prompts if uuid in kept}
    rewound = {uuid for uuid in prompts if uuid not in kept and parents[uuid] in begun_again}
    for uuid, parent in parents.items():
        if parent in rewound:
            rewound.add(uuid)
    return rewound


def events_of(record: Record, checked: Record | None = None) -> Iterator[Event]:
    """Yield a record's events; `checked` is the same record after `checked_record()`."""
    checked = checked or checked_record(record)[0]
    time, session = time_of(checked.get("timestamp")), session_of(checked)
    agent = checked.get("agentId") or checked.get("agent_id") or checked.get("parent_tool_use_id") or ""
    match checked.get("type"):
        case "assistant":
            yield from _answer(checked, record, Event("text", time, session, agent, ""))
        case "user":
            yield from _from_user(record, Event("prompt", time, session, agent, ""))
        case "attachment":
            yield from _from_attachment(record, Event("attachment", time, session, agent, ""))
        case "system" if checked.get("subtype") == "compact_boundary":
            facts = record.get("compactMetadata") or record.get("compact_metadata")
            tokens_before = _number(facts, "preTokens", "pre_tokens")
            yield Event(
                "compaction", time, session, agent, "", tokens=tokens_before, identity=checked.get("uuid") or ""
            )
        case _:
            pass


def _answer(checked: Record, record: Record, base: Event) -> Iterator[Event]:
    message = cast("Record", record["message"]) if isinstance(record.get("message"), dict) else {}
    fields: Record = checked.get("message") or {}
    usage: Record = fields.get("usage") or {}
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    model, context = fields.get("model") or "", sum(usage.get(name) or 0 for name in names)
    failed = model == SYNTHETIC or checked.get("isApiErrorMessage") is True
    base = base._replace(identity=fields.get("id") or "")
    for block in _blocks(message.get("content")):
        kind, text = block.get("type"), block.get("text")
        if kind == "text" and isinstance(text, str):
            text_kind: EventKind = "error" if failed else "text"
            yield base._replace(kind=text_kind, text=text, name=model, tokens=context)
        elif kind == "thinking":
            yield base._replace(kind="thinking", text=text_or_empty(block.get("thinking")))
        elif kind in ("tool_use", "server_tool_use"):
            name, identity = (text_or_empty(block.get(field)) for field in ("name", "id"))
            value = block.get("input")
            call = base._replace(kind="call", name=name, identity=identity, tokens=context, message_id=base.identity)
            yield call._replace(text=_input_text(value), input=value)
        elif isinstance(kind, str) and kind.endswith("_tool_result"):  # of a tool on the API's side
            text, identity = _result_text(block.get("content")), text_or_empty(block.get("tool_use_id"))
            yield base._replace(kind="result", text=text, identity=identity)


def _from_user(record: Record, base: Event) -> Iterator[Event]:
    if record.get("isMeta") is True or record.get("isReplay") is True:
        return
    # The summary that replaces a conversation is not a prompt.
    summary = record.get("isCompactSummary") is True or record.get("isSynthetic") is True
    message = record.get("message")
    content = cast("Record", message).get("content") if isinstance(message, dict) else None
    for block in _blocks(content):
        if block.get("type") == "tool_result":
            text, failed = _result_text(block.get("content")), block.get("is_error") is True
            identity = text_or_empty(block.get("tool_use_id"))
            yield base._replace(kind="result", text=text, identity=identity, failed=failed)
        else:
            told = base._replace(kind="attachment", name="summary") if summary else base
            yield told._replace(text=_block_text(block), identity=text_or_empty(record.get("uuid")))
    if not content and record.get("toolUseResult"):  # without the message that the model got
        identity = text_or_empty(record.get("sourceToolAssistantUUID")) or text_or_empty(record.get("uuid"))
        yield base._replace(kind="result", text=_texts_in(record["toolUseResult"]), identity=identity)


def _from_attachment(record: Record, base: Event) -> Iterator[Event]:
    attachment = record.get("attachment")
    if not isinstance(attachment, dict):
        return
    fields = cast("Record", attachment)
    kind, identity = text_or_empty(fields.get("type")), text_or_empty(record.get("uuid"))
    if kind == "queued_command":  # a prompt that was typed while Claude worked
        yield base._replace(kind="prompt", text=_texts_in(fields.get("prompt")), identity=identity)
    elif kind in _ATTACHMENTS:
        name = text_or_empty(fields.get("displayPath")) or text_or_empty(fields.get("filename")) or kind
        yield base._replace(name=name, text=_texts_in(fields), identity=identity)


def _texts_in(value: object) -> str:
    """Return the texts in a value of any form, in the order of `_TEXTS`."""
    if isinstance(value, list):
        return "\n".join(filter(None, map(_texts_in, cast("list[object]", value))))
    if isinstance(value, dict):
        fields = cast("Record", value)
        return "\n".join(filter(None, [_texts_in(fields.get(name)) for name in _TEXTS]))
    return text_or_empty(value)


def _input_text(tool_input: object) -> str:
    try:
        return json.dumps(tool_input, ensure_ascii=False, indent=1)
    except RecursionError:  # indenting allows less depth than decoding
        return json.dumps(tool_input, ensure_ascii=False)


def _blocks(content: object) -> list[Record]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if isinstance(content, dict):  # the result of a tool on the API's side
        return [cast("Record", content)]
    if not isinstance(content, list):
        return []
    return [cast("Record", block) for block in cast("list[object]", content) if isinstance(block, dict)]


def _result_text(content: object) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(map(_block_text, _blocks(content)))


def _block_text(block: Record) -> str:
    kind, source = text_or_empty(block.get("type")), block.get("source")
    if kind == "text":
        return text_or_empty(block.get("text"))
    if isinstance(source, dict) and cast("Record", source).get("type") == "text":
        return text_or_empty(cast("Record", source).get("data"))
    return _texts_in(block) or (kind and f"[{kind}]")


def text_or_empty(value: object) -> str:
    """Return a text, or an empty text for another type."""
    return value if isinstance(value, str) else ""


def _number(facts: object, *names: str) -> int:
    for name in names:
        value = cast("Record", facts).get(name) if isinstance(facts, dict) else None
        if isinstance(value, int) and value > 0:
            return value
    return 0
