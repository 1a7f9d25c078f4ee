"""Claude Code transcripts as entries: in files, or in a store with the SDK interface; what the model sees of them.

Knows no messages of pydantic-ai.
"""

import asyncio
import json
import os
import re
import string
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import reduce
from pathlib import Path
from typing import Any, cast
from uuid import UUID, uuid4

from claude_agent_sdk import SessionKey, SessionStore, SessionStoreEntry

from cc_convert.internals import write_private
from cc_messages.internals import WHITESPACE, Block, HistoryMessage, says_nothing

Entries = dict[str, list[SessionStoreEntry]]
"""A session's entries by subpath; the conversation itself has the subpath `""`."""
_Entry = dict[str, Any]

_DESCRIPTION = "agent_metadata"
# Longer names of folders end in a hash, a number with these digits.
_LONGEST_NAME, _DIGITS = 200, string.digits + string.ascii_lowercase
UNFINISHED = "unfinished last line"
"""The type of the entry in the place of such a line."""


class HandOverError(ValueError):
    """A conversation holds something that the other side cannot carry. Nothing was written."""


class SessionNotFoundError(LookupError):
    """A session id, transcript file or stored session does not exist."""


def config_folder(config_dir: str | Path | None) -> Path:
    """Return the Claude Code configuration folder."""
    return Path(config_dir or os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude").expanduser()


def absolute_folder(cwd: str | Path) -> str:
    """Return a working folder path, without links."""
    if not Path(cwd).is_dir():
        raise HandOverError(f"cwd={str(cwd)!r} is not a folder: create it, or pass another one")
    return str(Path(cwd).resolve())


def project_folder(cwd: str | Path) -> str:
    """Return the name of the folder for a working folder's sessions, in the configuration folder or a store.

    The SDK function gives another name if there are emoji, which JavaScript counts as two, or decomposed characters.
    """
    path = os.path.realpath(cwd).encode("utf-16-le", "surrogatepass")
    units = struct.unpack(f"<{len(path) // 2}H", path)
    name = re.sub("[^a-zA-Z0-9]", "-", "".join(map(chr, units)))
    if len(name) <= _LONGEST_NAME:
        return name
    remainder = reduce(lambda value, unit: (31 * value + unit) % 2**32, units, 0)
    remainder = min(remainder, 2**32 - remainder)  # the absolute value of a signed number
    digits = ""
    while remainder:
        remainder, digit = divmod(remainder, 36)
        digits = f"{_DIGITS[digit]}{digits}"
    return f"{name[:_LONGEST_NAME]}-{digits}"


def find_file(session: str | Path, config_dir: str | Path | None) -> Path:
    """Return a session transcript, by id or path."""
    folder = config_folder(config_dir) / "projects"
    if isinstance(session, Path) or not _is_id(session):
        files = [path] if (path := Path(session).expanduser()).is_file() else []
        problem = f"{str(session)!r} is neither a session id nor a transcript file"
    else:
        files = sorted(folder.glob(f"*/{session}.jsonl"), key=lambda path: path.stat().st_mtime)
        problem = f"session {session} has no transcript in {folder}: set config_dir, or pass the path"
    if not files:
        raise SessionNotFoundError(f"{problem}{_similar_session(str(session), folder)}")
    return files[-1]


def _similar_session(session: str, folder: Path) -> str:
    """Return a question with the id that is meant, such as the one that begins with `session`; empty if none does."""
    ids = [path.stem for path in folder.glob("*/*.jsonl")]
    text = session.lower()
    similar_ids = [name for name in ids if len(text) > 3 and name.startswith(text)] or get_close_matches(
        text, ids, 1, 0.8
    )
    return f" (did you mean {similar_ids[0]}?)" if similar_ids else ""


def read_files(transcript: Path) -> Entries:
    """Return the entries in a transcript, and in those of its sub-agents.

    A last line that Claude Code has not finished becomes an entry that says so.
    """
    folder = transcript.with_suffix("")
    entries: Entries = {"": [*_read_lines(transcript)]}
    for path in sorted(folder.glob("subagents/**/*.jsonl")):
        entries[path.relative_to(folder).with_suffix("").as_posix()] = [*_read_lines(path)]
    return entries


async def read_store(store: SessionStore, key: SessionKey) -> Entries:
    """Return a session's entries in a store; of its sub-agents only if the store lists them."""
    entries = await store.load(key)
    if not entries:
        project = key["project_key"]
        raise SessionNotFoundError(f"the store has no session {key['session_id']} of {project}: check the id and cwd")
    result: Entries = {"": entries}
    try:
        subpaths = await store.list_subkeys({"project_key": key["project_key"], "session_id": key["session_id"]})
    except (AttributeError, NotImplementedError):
        return result
    for subpath in subpaths:
        result[subpath] = await store.load({**key, "subpath": subpath}) or []
    return result


def write_entries(entries: Entries, session_id: str, cwd: str | Path, config_dir: str | Path | None) -> Path:
    """Write a session transcript, and its sub-agents', where Claude Code looks for the sessions of a folder."""
    checked_id(session_id)
    project = config_folder(config_dir) / "projects" / project_folder(cwd)
    path = project / f"{session_id}.jsonl"
    if path.exists():
        raise HandOverError(f"session {session_id} exists: {path}")
    for subpath in filter(None, entries):
        if not subpath.startswith("subagents/") or {"..", "."} & {*subpath.split("/")} or "\\" in subpath:
            raise HandOverError(f"{subpath!r} is not a path of a sub-agent's transcript")
    # The conversation last: without it, the other files belong to no session.
    for subpath, lines in sorted(entries.items(), reverse=True):
        file = project / session_id / f"{subpath}.jsonl" if subpath else path
        # A store has a sub-agent's description among the entries, Claude Code in a file beside them.
        descriptions = [entry for entry in lines if entry["type"] == _DESCRIPTION]
        if descriptions:
            text = json.dumps({name: value for name, value in descriptions[-1].items() if name != "type"})
            write_private(file.with_suffix(".meta.json"), text.encode())
        text = "".join(f"{json.dumps(entry)}\n" for entry in lines if entry["type"] != _DESCRIPTION)
        try:
            write_private(file, text.encode(), is_new=not subpath)
        except FileExistsError:  # since the check
            raise HandOverError(f"session {session_id} exists: {path}") from None
    return path


async def restore_session(
    store: SessionStore, session_id: str, cwd: str | Path, *, config_dir: str | Path | None = None
) -> Path:
    """Write a session from a store as a transcript, so that Claude Code on this machine can resume it.

    The SDK does this by itself only for its own client. With cc-session restore the session, and open it with
    `ClaudeAgentOptions(cwd=cwd, resume=session_id, session_store=store)`. Sealed options need `CLAUDE_CONFIG_DIR` in
    their `env`, too.

    Args:
        store: Any object with the SDK interface `SessionStore`.
        session_id: Id of the session.
        cwd: Working folder of the session.
        config_dir: Claude Code's configuration folder; `CLAUDE_CONFIG_DIR` or `~/.claude` if None.

    Returns:
        The path of the transcript.

    Raises:
        SessionNotFoundError: The store has no such session.
        HandOverError: The session exists on this machine, or the store has an invalid path.
    """
    entries = await read_store(store, {"project_key": project_folder(cwd), "session_id": session_id})
    return await asyncio.to_thread(write_entries, entries, session_id, cwd, config_dir)


def _read_lines(path: Path) -> Iterator[SessionStoreEntry]:
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True), 1):
        if not line.strip():
            continue
        try:
            entry: Any = json.loads(line)
        except ValueError as error:
            if not line.endswith(b"\n"):
                yield {"type": UNFINISHED}
                return
            raise HandOverError(f"{path}, line {number} is not JSON: {error}") from error
        if not isinstance(entry, dict):
            raise HandOverError(f"{path}, line {number} is not a JSON object")
        yield cast(SessionStoreEntry, entry)


def _is_id(text: str) -> bool:
    """Return true for the form that the CLI takes: with hyphens, and without braces."""
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False


def checked_id(session_id: str) -> str:
    """Return a session id, which must have the form that the CLI takes."""
    if not _is_id(session_id):
        raise HandOverError(f"session_id={session_id!r} is not a UUID: use str(uuid4())")
    return session_id


def as_the_model_sees(entries: Iterable[SessionStoreEntry]) -> list[SessionStoreEntry]:
    """Return entries in which the SDK reader finds all messages that Claude Code sends to the model.

    The reader passes over notes, prompts that were written during a turn, and messages kept by a compaction.
    """
    result = [_visible(cast(_Entry, entry)) for entry in entries]
    for entry in [*result]:
        match entry:
            case {"compactMetadata": {"preservedSegment": {"headUuid": head, "anchorUuid": anchor, "tailUuid": tail}}}:
                result = [_moved(record, head, anchor, tail) for record in result]
            case _:
                pass
    return cast("list[SessionStoreEntry]", result)


def _visible(entry: _Entry) -> _Entry:
    match entry:
        case {"type": "attachment", "attachment": {"type": "queued_command", "prompt": prompt}}:
            return {**entry, "type": "user", "message": {"role": "user", "content": prompt}}
        case {"type": "system", "subtype": "local_command", "content": str(output)}:
            return {**entry, "type": "user", "message": {"role": "user", "content": output}}
        case {"type": "user", "isMeta": True} if not entry.get("ownNote"):
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
    """Yield the kind of each entry that is not a message, up to the last message and after it, and of missing ones."""
    chain = {leaf}
    for uuid, entry in by_uuid.items():
        if entry.get("parentUuid") in chain and entry["type"] not in ("assistant", "user"):
            chain.add(uuid)
    uuid: str | None = cast(_Entry, by_uuid[leaf]).get("parentUuid")
    while uuid is not None and uuid in by_uuid and uuid not in chain:
        chain.add(uuid)
        uuid = cast(_Entry, by_uuid[uuid]).get("parentUuid")
    if uuid not in by_uuid and uuid is not None:
        yield "gap in the transcript, with all before it"
    for uuid in chain:
        match cast(_Entry, by_uuid[uuid]):
            case {"type": "attachment", "attachment": {"type": kind}}:
                yield f"attachment {kind}"
            case {"type": "system", "subtype": kind} if kind != "compact_boundary":
                yield f"entry {kind}"
            case {"type": "user", "ownNote": True}:  # sent as a reminder
                yield "note of Claude Code's own"
            case _:
                pass


def resent(role: str, content: Sequence[Block], left_out: Counter[str]) -> list[Block]:
    """Return the blocks in a message that Claude Code sends again, and count the others."""
    if role == "assistant":
        if all(map(says_nothing, content)):
            left_out["answer with nothing but thinking or blanks"] += 1
            return []
        return [*content]
    kept = [block for block in content if block["type"] != "text" or str(block["text"]).strip(WHITESPACE)]
    left_out["blank text"] += len(content) - len(kept)
    return [_without_files(block, left_out) if block.get("is_error") is True else block for block in kept]


def _without_files(result: Block, left_out: Counter[str]) -> Block:
    items = result.get("content")
    if not isinstance(items, list):
        return result
    texts = [item for item in items if isinstance(item, dict) and item.get("type") == "text"]
    left_out["file in the result of a failed call"] += len(items) - len(texts)
    return {**result, "content": [*texts]}


def new_entries(history: Sequence[HistoryMessage], session_id: str, cwd: str, model: str) -> list[SessionStoreEntry]:
    """Return a transcript's entries for a conversation, with the working folder and the answers' model."""
    uuids = [str(uuid4()) for _ in history]
    time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    entries: list[_Entry] = [
        {
            "parentUuid": parent,
            "isSidechain": False,
            "type": message.role,
            "message": (
                {"role": message.role, "content": message.blocks()}
                if message.role == "user"
                else new_answer(message.blocks(), model)
            ),
            "uuid": uuid,
            "timestamp": time,
            "userType": "external",
            "cwd": cwd,
            "sessionId": session_id,
        }
        for message, uuid, parent in zip(history, uuids, [None, *uuids], strict=False)
    ]
    return cast("list[SessionStoreEntry]", entries)


def new_answer(content: list[Block], model: str) -> dict[str, Any]:
    """Return an answer of the API."""
    return {
        "id": f"msg_{uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": "tool_use" if any(block["type"] == "tool_use" for block in content) else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }
