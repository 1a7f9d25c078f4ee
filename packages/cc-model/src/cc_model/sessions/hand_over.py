"""`to_claude_code()` and `from_claude_code()`."""

import asyncio
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from claude_agent_sdk import (
    InMemorySessionStore,
    SessionKey,
    SessionMessage,
    SessionStore,
    SessionStoreEntry,
    get_session_messages_from_store,
    get_subagent_messages_from_store,
    list_subagents_from_store,
    project_key_for_directory,
)
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolReturnPart

from cc_messages.internals import HistoryMessage, as_blocks, check_pairs, merged, says_nothing, unfolded_messages
from cc_types import APIError

from .mapping import PROVIDERS, APIMapper, details_left_out, request_parts
from .sqlite_store import SQLiteSessionStore
from .transcripts import (
    UNFINISHED,
    Entries,
    HandOverError,
    absolute_folder,
    as_the_model_sees,
    checked_id,
    find_file,
    kinds_left_out,
    new_entries,
    project_folder,
    read_files,
    read_store,
    resent,
    write_entries,
)

# The SDK readers get the entries alone, which are in no folder, and perhaps have no session id.
_FOLDER, _ID = "/", "00000000-0000-4000-8000-000000000000"
# Older CLIs wrote sub-agents' messages beside the session's.
_SIDECHAIN = "message of a sub-agent in the session's file"
# Claude Code's text for such a call.
_INTERRUPTED = (
    "[Tool call interrupted: the session ended before this call's result was recorded, so its outcome is unknown. "
    "Check whether it took effect before relying on it or running it again.]"
)


@dataclass(frozen=True, slots=True)
class ClaudeCodeSession:
    """A conversation that an agent and the `claude` command have in common."""

    session_id: str
    """For `claude --resume`."""
    messages: list[ModelMessage]
    """The conversation, for `message_history`."""
    agents: dict[str, list[ModelMessage]] = field(default_factory=dict[str, list[ModelMessage]])
    """Conversations of Claude Code sub-agents, by agent id. The result of the call that started a sub-agent has the
    id in its `metadata`, as `agent_id`."""
    system_prompt: str = ""
    """The agent system prompt and instructions, which the session does not have: for `--append-system-prompt`."""
    left_out: tuple[str, ...] = ()
    """Kinds of content that the other side does not get, with numbers."""


async def to_claude_code(
    messages: Sequence[ModelMessage],
    cwd: str | Path,
    *,
    session_id: str | None = None,
    config_dir: str | Path | None = None,
    store: SessionStore | None = None,
) -> ClaudeCodeSession:
    """Write a history as a session of Claude Code, which `claude --resume ID` opens in the folder `cwd`.

    Tools, results, thinking, images and documents are there as what they were. The system prompt is left out.

    Args:
        messages: The history, such as `result.all_messages()`.
        cwd: The folder in which the session is continued.
        session_id: A UUID for the session; a new one if None.
        config_dir: Claude Code's configuration folder; `CLAUDE_CONFIG_DIR` or `~/.claude` if None.
        store: Store that gets the session, in the place of a file in `config_dir`.

    Raises:
        HandOverError: The history is empty, it ends in calls without results, Claude cannot carry a part of it, or the
            session exists, or the id is not a UUID, or `cwd` is not a folder.
    """
    folder, session_id = absolute_folder(cwd), checked_id(session_id or str(uuid4()))
    body = await APIMapper().request_body(messages)
    left_out = Counter[str]()
    history = _checked(unfolded_messages(body["messages"]), left_out)
    entries = new_entries(history, session_id, folder, _last_model(messages))
    if store is None:
        await asyncio.to_thread(write_entries, {"": entries}, session_id, cwd, config_dir)
    else:
        key: SessionKey = {"project_key": project_folder(cwd), "session_id": session_id}
        if isinstance(store, SQLiteSessionStore):
            exists = not await store.create(key, entries)
        elif not (exists := bool(await store.load(key))):
            await store.append(key, entries)
        if exists:
            raise HandOverError(f"session {session_id} exists in the store")
    text = body["system"]
    names = (f"the system prompt ({len(text)} characters)",) if text else ()
    return ClaudeCodeSession(session_id, [*messages], system_prompt=text, left_out=(*names, *_counted(left_out)))


async def from_claude_code(
    session: str | Path,
    *,
    cwd: str | Path | None = None,
    config_dir: str | Path | None = None,
    store: SessionStore | None = None,
) -> ClaudeCodeSession:
    """Read a session of Claude Code as a history for an agent.

    The history is what Claude Code would go on with: after a compaction the summary and what followed, after a rewind
    the last branch. Claude Code's own reminders and error messages are left out.

    Args:
        session: The session id, or the path of its transcript.
        cwd: The session folder; only for a store, whose sessions belong to folders.
        config_dir: Claude Code's configuration folder; `CLAUDE_CONFIG_DIR` or `~/.claude` if None.
        store: Store that has the session, in the place of a file.

    Raises:
        SessionNotFoundError: The session does not exist.
        HandOverError: The transcript is damaged or has no messages, or pydantic-ai has no part for a block.
    """
    if store is None:
        path = find_file(session, config_dir)
        session_id, entries = path.stem, await asyncio.to_thread(read_files, path)
    else:
        session_id = str(session)
        entries = await read_store(store, {"project_key": project_folder(cwd or "."), "session_id": session_id})
    with _readable(f"session {session_id}"):
        return await _read(session_id, entries)


async def _read(session_id: str, entries: Entries) -> ClaudeCodeSession:
    memory, left_out = InMemorySessionStore(), Counter[str]()
    key: SessionKey = {"project_key": project_key_for_directory(_FOLDER), "session_id": _ID}
    by_uuid: dict[str, SessionStoreEntry] = {}
    for subpath, lines in entries.items():
        lines = as_the_model_sees(lines)
        by_uuid |= {entry["uuid"]: entry for entry in lines if "uuid" in entry}
        left_out.update(entry["type"] for entry in lines if entry.get("type") == UNFINISHED)
        if not subpath:
            left_out.update(_SIDECHAIN for entry in lines if entry.get("isSidechain") and "message" in entry)
        await memory.append({**key, "subpath": subpath} if subpath else key, lines)
    chain = await get_session_messages_from_store(memory, _ID, _FOLDER)
    if not chain:
        reason = ": it is a sub-agent's, so read the session that started it" if left_out[_SIDECHAIN] else ""
        raise HandOverError(f"session {session_id} has no messages{reason}")
    left_out.update(kinds_left_out(chain[-1].uuid, by_uuid))
    mapper = APIMapper()
    messages = await _messages(mapper, chain, by_uuid, left_out)
    agents: dict[str, list[ModelMessage]] = {}
    for agent in await list_subagents_from_store(memory, _ID, _FOLDER):
        agent_chain = await get_subagent_messages_from_store(memory, _ID, agent, _FOLDER)
        agents[agent] = await _messages(mapper, agent_chain, by_uuid, left_out)
    return ClaudeCodeSession(session_id, messages, agents, left_out=_counted(left_out))


def _counted(left_out: Counter[str]) -> tuple[str, ...]:
    return tuple(f"{count} × {kind}" for kind, count in sorted(left_out.items()) if count)


def _last_model(messages: Sequence[ModelMessage]) -> str:
    """Return the model with which the terminal goes on: the last of Claude's in the history."""
    answers = (message for message in reversed(messages) if isinstance(message, ModelResponse))
    names = (answer.model_name for answer in answers if answer.provider_name in PROVIDERS)
    return next(filter(None, names), "claude-sonnet-5")


async def _messages(
    mapper: APIMapper,
    chain: Iterable[SessionMessage],
    by_uuid: Mapping[str, SessionStoreEntry],
    left_out: Counter[str],
) -> list[ModelMessage]:
    result: list[ModelMessage] = []
    names: dict[str, str] = {}
    for message, entry in _joined(chain, by_uuid, left_out):
        await asyncio.sleep(0)  # other tasks go on: a session of thousands of messages takes seconds
        if entry.get("isApiErrorMessage"):
            left_out["API error message"] += 1
            continue
        place = f"message {entry.get('uuid')}"
        with _readable(place):
            time = datetime.fromisoformat(entry["timestamp"]) if "timestamp" in entry else datetime.now(UTC)
            content = resent(message["role"], message["content"], left_out)
            left_out.update(details_left_out(content))
            if not content:
                continue
            if message["role"] == "assistant":
                calls = {str(block["id"]): str(block["name"]) for block in content if block["type"] == "tool_use"}
                if repeated := names.keys() & calls:
                    raise HandOverError(f"{place}: the call id {min(repeated)!r} comes more than once")
                names |= calls
                result.append(replace(await mapper.response({**message, "content": content}), timestamp=time))
                continue
            parts = request_parts(content, names, place)
            for part in parts:
                if isinstance(part, ToolReturnPart) and (agent := entry.get("agent_id")):
                    part.metadata = {"agent_id": agent}
            if result and isinstance(last_message := result[-1], ModelRequest):
                parts = [*cast(ModelRequest, result.pop()).parts, *parts]
                time = last_message.timestamp or time
            result.append(ModelRequest(parts=parts, timestamp=time))
    return _closed(result, left_out)


def _closed(messages: Iterable[ModelMessage], left_out: Counter[str]) -> list[ModelMessage]:
    """Return the messages with a result for each call that was interrupted, as Claude Code sends them."""
    result: list[ModelMessage] = []
    for message in [*messages, None]:
        if result and isinstance(last_message := result[-1], ModelResponse):
            parts = message.parts if isinstance(message, ModelRequest) else ()
            answered = {part.tool_call_id for part in parts if isinstance(part, ToolReturnPart)}
            interrupted_returns = [
                ToolReturnPart(call.tool_name, _INTERRUPTED, tool_call_id=call.tool_call_id, outcome="failed")
                for call in last_message.tool_calls
                if call.tool_call_id not in answered
            ]
            left_out["result of an interrupted call"] += len(interrupted_returns)
            if interrupted_returns and isinstance(message, ModelRequest):
                message = replace(message, parts=[*interrupted_returns, *message.parts])
            elif interrupted_returns:
                result.append(ModelRequest(parts=interrupted_returns, timestamp=last_message.timestamp))
        if message is not None:
            result.append(message)
    return result


@contextmanager
def _readable(place: str) -> Generator[None]:
    """Name the place if a transcript is not in Claude Code's form, as after a change by another program."""
    try:
        yield
    except HandOverError:
        raise
    except (APIError, AssertionError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise HandOverError(f"{place} is not in Claude Code's form: {error!r}") from error


def _joined(
    chain: Iterable[SessionMessage], by_uuid: Mapping[str, SessionStoreEntry], left_out: Counter[str]
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return the messages with their entries.

    The CLI writes an entry for each block of an answer, perhaps with a call result before the next block.
    """
    result: list[tuple[dict[str, Any], dict[str, Any]]] = []
    answers: dict[str, dict[str, Any]] = {}
    for item in chain:
        with _readable(f"message {item.uuid}"):
            message: dict[str, Any] = {"id": item.uuid, **item.message}
            entry: dict[str, Any] = dict(by_uuid[item.uuid])
            message["content"] = as_blocks(message["content"], "content") if message["content"] else ()
            role = message["role"]
        if isinstance(tool_result := entry.get("toolUseResult"), dict):
            entry["agent_id"] = cast("dict[str, Any]", tool_result).get("agentId")
        if role == "assistant":
            blanks = [block for block in message["content"] if block["type"] == "text" and says_nothing(block)]
            if blanks and len(blanks) == len(message["content"]):
                left_out["blank text"] += len(blanks)
                continue
            answer = answers.setdefault(message["id"], message)
            if answer is not message:
                answer["content"] = (*answer["content"], *message["content"])
                continue
        result.append((message, entry))
    return result


def _checked(messages: Sequence[Any], left_out: Counter[str]) -> tuple[HistoryMessage, ...]:
    sent: list[HistoryMessage] = []
    try:
        for index, message in enumerate(messages):
            content = as_blocks(message["content"], f"messages.{index}.content")
            sent.append(HistoryMessage(message["role"], tuple(resent(message["role"], content, left_out))))
        history = merged(message for message in sent if message.content)
        check_pairs(history)
    except APIError as error:
        raise HandOverError(error.message) from error
    if not history:
        raise HandOverError("the history is empty: there is nothing to continue")
    calls = [str(block["name"]) for block in history[-1].content if block["type"] == "tool_use"]
    if calls:
        raise HandOverError(f"the history ends in calls without results: {', '.join(calls)}")
    return history
