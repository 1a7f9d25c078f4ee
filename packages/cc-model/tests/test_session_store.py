"""Sessions in a store: SQLite by the SDK's own suite, and the way there and back with cc-session and the CLI."""

import asyncio
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from claude_agent_sdk import (
    InMemorySessionStore,
    SessionKey,
    SessionStore,
    SessionStoreEntry,
    import_session_to_store,
    project_key_for_directory,
)
from claude_agent_sdk.testing import run_session_store_conformance

from cc_loopback import LoopbackServer
from cc_model.sessions import (
    HandOverError,
    SessionNotFoundError,
    SQLiteSessionStore,
    from_claude_code,
    restore_session,
    to_claude_code,
)
from cc_session import Session, sealed_options

from .handed_over import DONE, answer, config_of, conversation, question, with_sub_agent

KEY: SessionKey = {"project_key": "project", "session_id": "session"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteSessionStore]:
    store = SQLiteSessionStore(tmp_path / "sessions.sqlite")
    yield store
    store.close()


async def test_the_sdk_s_suite_passes(tmp_path: Path) -> None:
    """MODEL-134"""
    stores: list[SQLiteSessionStore] = []

    def make_store() -> SQLiteSessionStore:
        stores.append(SQLiteSessionStore(tmp_path / f"{len(stores)}.sqlite"))
        return stores[-1]

    await run_session_store_conformance(make_store)
    assert len(stores) >= 14
    for store in stores:
        store.close()


async def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    """MODEL-134"""
    stores = [SQLiteSessionStore(tmp_path / "sessions.sqlite") for _ in range(4)]
    writers = enumerate([store for store in stores for _ in range(10)])
    await asyncio.gather(*(store.append(KEY, [entry(uuid=str(number))]) for number, store in writers))
    loaded = await stores[0].load(KEY)
    assert sorted(int(item.get("uuid", "")) for item in loaded or ()) == [*range(40)]
    [session] = await stores[1].list_sessions("project")
    [summary] = await stores[2].list_session_summaries("project")
    assert session["mtime"] == summary["mtime"]
    for store in stores:
        store.close()


async def test_a_failure_leaves_no_part_of_a_batch(store: SQLiteSessionStore) -> None:
    """MODEL-134"""
    with pytest.raises(TypeError):
        await store.append(KEY, [entry(uuid="a"), entry(uuid="b", data=b"not JSON")])
    assert await store.load(KEY) is None


def test_the_file_is_private(tmp_path: Path) -> None:
    """MODEL-134: from its creation on, also if it existed, and never through a link."""
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(OSError):
        SQLiteSessionStore(tmp_path / "link")
    (tmp_path / "sessions.sqlite").touch(0o644)
    SQLiteSessionStore(tmp_path / "sessions.sqlite").close()
    assert stat.S_IMODE((tmp_path / "sessions.sqlite").stat().st_mode) == 0o600
    with pytest.raises(FileNotFoundError):
        SQLiteSessionStore(tmp_path / "missing" / "sessions.sqlite")


class TwoMethods:
    """The least that the SDK accepts as a store."""

    def __init__(self) -> None:
        self._inner = InMemorySessionStore()

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        await self._inner.append(key, entries)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        return await self._inner.load(key)


@pytest.mark.worlds
@pytest.mark.parametrize("kind", ["SQLite", "two methods"])
async def test_a_session_moves_between_machines(
    kind: str, store: SQLiteSessionStore, shared_api: LoopbackServer, tmp_path: Path
) -> None:
    """MODEL-133, MODEL-135: also in a folder with an emoji and a decomposed character in its name."""
    any_store: Any = store if kind == "SQLite" else TwoMethods()
    folder = tmp_path / ("project" if kind == "SQLite" else "cafe\u0301 \U0001f426.d")
    folder.mkdir()
    shared_api.respond = answer
    # The first machine: cc-session writes the store while it runs.
    async with await open_session(shared_api, folder, any_store) as session:
        turn = await session.run("First?")
        await session.run("Second?")
    # Another machine has the store, and other files.
    machine = tmp_path / "config"
    path = await restore_session(any_store, turn.session_id, folder, config_dir=machine)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    async with await open_session(
        shared_api, folder, any_store, config_dir=str(machine), resume=turn.session_id
    ) as session:
        await session.run("Third?")
    prompts = [message["content"][0]["text"] for message in conversation(shared_api.requests[-1])]
    assert prompts == ["First?", "Answered.", "Second?", "Answered.", "Third?"]
    read = await from_claude_code(turn.session_id, cwd=folder, store=any_store)
    assert [texts(message) for message in read.messages] == [*prompts, "Answered."]
    with pytest.raises(HandOverError, match="exists"):
        await restore_session(any_store, turn.session_id, folder, config_dir=machine)


async def test_a_history_goes_into_a_store(
    store: SQLiteSessionStore, shared_api: LoopbackServer, tmp_path: Path
) -> None:
    """MODEL-133"""
    history = [question("First?"), DONE]
    written = await to_claude_code(history, tmp_path, store=store)
    read = await from_claude_code(written.session_id, cwd=tmp_path, store=store)
    assert [type(message) for message in read.messages] == [type(message) for message in history]
    assert not (Path(config_of(shared_api)) / "projects" / project_key_for_directory(tmp_path)).exists()
    with pytest.raises(HandOverError, match="exists in the store"):
        await to_claude_code(history, tmp_path, session_id=written.session_id, store=store)
    with pytest.raises(SessionNotFoundError, match="the store has no session"):
        await from_claude_code(written.session_id, cwd=os.sep, store=store)


@pytest.mark.worlds
async def test_sub_agents_move_too(
    store: SQLiteSessionStore, shared_api: LoopbackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MODEL-133, MODEL-135"""
    session = with_sub_agent(shared_api, tmp_path)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", config_of(shared_api))
    await import_session_to_store(session, store, directory=str(tmp_path))
    first = await from_claude_code(session, cwd=tmp_path, store=store)
    machine = tmp_path / "config"
    await restore_session(store, session, tmp_path, config_dir=machine)
    second = await from_claude_code(session, config_dir=machine)
    [agent] = first.agents
    assert [str(message.parts[-1]) for message in second.agents[agent]][0].startswith("UserPromptPart")
    [description] = machine.glob(f"projects/*/{session}/subagents/agent-{agent}.meta.json")
    assert json.loads(description.read_text("utf-8"))["agentType"] == "general-purpose"
    assert not [*machine.rglob("*.part")]


async def test_a_path_from_a_store_stays_in_the_session(store: SQLiteSessionStore, tmp_path: Path) -> None:
    """MODEL-135"""
    written = await to_claude_code([question("First?"), DONE], tmp_path, store=store)
    key: Any = {"project_key": project_key_for_directory(tmp_path), "session_id": written.session_id}
    key["subpath"] = "subagents/../../../evil"
    await store.append(key, [entry(uuid="a")])
    with pytest.raises(HandOverError, match="is not a path of a sub-agent's transcript"):
        await restore_session(store, written.session_id, tmp_path, config_dir=tmp_path / "config")
    assert not (tmp_path / "config").exists()


async def open_session(
    api: LoopbackServer, folder: Path, store: SessionStore, config_dir: str | None = None, resume: str | None = None
) -> Session:
    env = api.env()
    del env["CLAUDE_CONFIG_DIR"]  # then the process has a private folder
    if config_dir is not None:
        env["CLAUDE_CONFIG_DIR"] = config_dir
    options = sealed_options(cwd=folder, env=env)
    del options.extra_args["no-session-persistence"]
    options.session_store, options.resume = store, resume
    return await Session.open(options)


def entry(**fields: Any) -> Any:
    return {"type": "user", **fields}


def texts(message: Any) -> str:
    return "".join(part.content for part in message.parts)


async def test_one_of_two_hand_overs_at_once_has_the_session_id(tmp_path: Path) -> None:
    """MODEL-134: in a store, and as a file."""
    store, session_id = SQLiteSessionStore(tmp_path / "sessions.sqlite"), str(uuid4())
    places: list[Any] = [{"store": store}, {"config_dir": tmp_path / "config"}]
    for place in places:
        histories = ([question(f"I am {number}.")] for number in range(8))
        hand_overs = (to_claude_code(each, cwd=tmp_path, session_id=session_id, **place) for each in histories)
        results = await asyncio.gather(*hand_overs, return_exceptions=True)
        [session] = [result for result in results if not isinstance(result, HandOverError)]
        assert not isinstance(session, BaseException)
        again = await from_claude_code(session_id, cwd=tmp_path, **place)
        assert texts(again.messages[0]) == texts(session.messages[0])
