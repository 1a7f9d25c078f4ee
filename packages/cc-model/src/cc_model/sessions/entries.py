"""Entries in Claude Code's transcripts: what the model sees of them, and new entries for messages. Pure functions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast
from uuid import uuid4

from claude_agent_sdk import SessionStoreEntry

from cc_messages.api.conversation import Block, HistoryMessage

__all__ = ["as_the_model_sees", "kinds_left_out", "new_entries"]

_Entry = dict[str, Any]


def as_the_model_sees(entries: Iterable[SessionStoreEntry]) -> list[SessionStoreEntry]:
    """Return entries in which the SDK's reader finds all messages that Claude Code sends to the model.

    The reader passes over notes, prompts that were written during a turn, and messages kept by a compaction.
    """
    result = [_visible(cast(_Entry, entry)) for entry in entries]
    for entry in [*result]:
        match entry:
            case {"compactMetadata": {"preservedSegment": {"headUuid": head, "anchorUuid": anchor, "tailUuid": tail}}}:
                result = [_moved(other, head, anchor, tail) for other in result]
            case _:
                pass
    return cast("list[SessionStoreEntry]", result)


def _visible(entry: _Entry) -> _Entry:
    match entry:
        case {"type": "attachment", "attachment": {"type": "queued_command", "prompt": prompt}}:
            return {**entry, "type": "user", "message": {"role": "user", "content": prompt}}
        case {"type": "user", "isMeta": True}:
            return {**entry, "isMeta": False}
        case _:
            return entry


def _moved(entry: _Entry, head: str, summary: str, tail: str) -> _Entry:
    """Return an entry with its place after a compaction: the kept messages stand between the summary and the rest."""
    if entry.get("uuid") == head:
        return {**entry, "parentUuid": summary}
    if entry.get("parentUuid") == summary:
        return {**entry, "parentUuid": tail}
    return entry


def kinds_left_out(leaf: str, by_uuid: Mapping[str, SessionStoreEntry]) -> Iterator[str]:
    """Yield the kind of each entry up to a last message that is not a message."""
    visited: set[str] = set()
    uuid: str | None = leaf
    while uuid is not None and uuid in by_uuid and uuid not in visited:
        visited.add(uuid)
        entry = cast(_Entry, by_uuid[uuid])
        match entry:
            case {"type": "attachment", "attachment": {"type": kind}}:
                yield f"attachment {kind}"
            case {"type": "system", "subtype": kind} if kind != "compact_boundary":
                yield f"entry {kind}"
            case _:
                pass
        uuid = entry.get("parentUuid")


def new_entries(history: Sequence[HistoryMessage], session_id: str, cwd: str, model: str) -> list[SessionStoreEntry]:
    """Return a transcript's entries for a conversation.

    Args:
        history: The messages.
        session_id: Id of the session.
        cwd: Working folder of the session.
        model: Model for the answers.
    """
    uuids = [str(uuid4()) for _ in history]
    time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    entries: list[_Entry] = [
        {
            "parentUuid": parent,
            "isSidechain": False,
            "type": message.role,
            "message": _message(message.role, message.blocks(), model),
            "uuid": uuid,
            "timestamp": time,
            "userType": "external",
            "cwd": cwd,
            "sessionId": session_id,
        }
        for message, uuid, parent in zip(history, uuids, [None, *uuids], strict=False)
    ]
    return cast("list[SessionStoreEntry]", entries)


def _message(role: str, content: list[Block], model: str) -> _Entry:
    if role == "user":
        return {"role": role, "content": content}
    return {
        "id": f"msg_{uuid4().hex}",
        "type": "message",
        "role": role,
        "model": model,
        "content": content,
        "stop_reason": "tool_use" if any(block["type"] == "tool_use" for block in content) else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }
