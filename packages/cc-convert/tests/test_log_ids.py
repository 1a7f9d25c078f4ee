"""Answers whose ids tell little: behind gateways, in copies, and without any id."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from cc_convert.log_files.archive import to_archive
from cc_convert.logs import Cache, read_logs

Maker: TypeAlias = Callable[..., Any]


def inputs(*paths: Path, **options: Any) -> list[int]:
    return sorted(row.input for row in read_logs(*paths, **options).rows)


def answer(log: Any, number: int, message_id: str | None, request_id: str | None, blocks: int = 1, **more: Any) -> None:
    """Add an answer whose input tells it apart."""
    for block in range(blocks):
        usage = {"input_tokens": 1000 + number, "output_tokens": 5, "cache_read_input_tokens": 7}
        before = log.lines[-1].get("uuid") if block else None
        line = log.answer(
            "msg", usage=usage, requestId=request_id or ..., parentUuid=before or f"prompt-{log.session}-{number}",
            uuid=f"{log.session}-{more}-{len(log.lines)}", **more,
        )  # fmt: skip
        line["message"]["id"] = message_id


@pytest.mark.parametrize("strict", [False, True])
def test_one_id_for_all_answers_hides_none(log: Any, strict: bool) -> None:
    """LOG-21: the input differs, and then nothing but the request id."""
    for number in (1, 2, 4, 4):
        answer(log, number, "msg_gateway", f"req_{len(log.lines)}", blocks=1)

    assert inputs(log.write(), strict=strict) == [1001, 1002, 1004, 1004]


def test_ids_that_begin_anew_in_each_session_hide_none(maker: Maker, tmp_path: Path) -> None:
    """LOG-21: without request ids, and with equal counts."""
    for session in ("s1", "s2"):
        log = maker(session)
        for number in (1, 2):
            answer(log, number, f"msg_{number}", None, blocks=2)
        log.write(tmp_path / "logs" / f"{session}.jsonl")

    assert inputs(tmp_path / "logs") == [1001, 1001, 1002, 1002]


def test_an_answer_that_a_subagent_repeats_counts_once(maker: Maker, tmp_path: Path) -> None:
    """LOG-21: with the parent's message id and another request id."""
    log, agent = maker(), maker()
    answer(log, 1, "msg_1", "req_1")
    answer(agent, 1, "msg_1", "req_2", agentId="a1", isSidechain=True)
    agent.lines[0]["uuid"] = "copied"
    log.write(tmp_path / "s1.jsonl")
    agent.write(tmp_path / "s1" / "subagents" / "agent-a1.jsonl")

    assert inputs(tmp_path / "s1.jsonl", tmp_path / "s1") == [1001]


def scenario(maker: Maker, folder: Path, seed: int) -> tuple[list[int], dict[str, set[int]]]:
    """Write sessions, forks and sub-agents behind a gateway; return the inputs of all answers, and by session."""
    chance = random.Random(seed)
    name = chance.choice(["msg_{1}", "msg_gateway", "msg_{0}_{1}", None])
    has_request_ids = chance.random() < 0.6
    truth: list[int] = []
    by_session: dict[str, set[int]] = {}
    parent = None
    for session in ("s1", "s2", "s3")[: chance.randint(1, 3)]:
        log = maker(session, start=f"2026-11-2{session[1]}T10:00:00Z")
        if parent is not None and chance.random() < 0.4:
            note = {"type": "queue-operation", "sessionId": session, "timestamp": log.time()}
            log.lines = [note, *(line | {"sessionId": session} for line in parent.lines if "uuid" in line)]
            if chance.random() < 0.5:
                log.lines = [note, *({"requestSessionId": parent.session} | line for line in log.lines[1:])]
        agent = maker(session, start=f"2026-11-2{session[1]}T10:00:30Z")
        for number in range(1, chance.randint(2, 6)):
            place, more = (agent, {"agentId": "a1"}) if chance.random() < 0.3 else (log, {})
            unique = len(truth)
            truth.append(1000 + unique)
            by_session.setdefault(session, set()).add(1000 + unique)
            request = f"req_{unique}" if has_request_ids else None
            message_id = name and name.format(session, number)
            answer(place, unique, message_id, request, blocks=chance.randint(1, 3), **more)
        log.write(folder / f"{session}.jsonl")
        if agent.lines:
            agent.write(folder / session / "subagents" / "agent-a1.jsonl")
        parent = log
    if chance.random() < 0.3:
        (folder / "copy.jsonl").write_bytes((folder / "s1.jsonl").read_bytes())
    return truth, by_session


@pytest.mark.parametrize("seed", range(150))
def test_each_answer_counts_once_whatever_its_ids(maker: Maker, tmp_path: Path, seed: int) -> None:
    """LOG-20, LOG-21: read strictly, in steps, and together with an archive."""
    folder = tmp_path / "logs"
    truth, by_session = scenario(maker, folder, seed)

    logs = read_logs(folder)

    assert sorted(row.input for row in logs.rows) == truth
    assert {session: {row.input for row in logs.rows if row.session == session} for session in by_session} == by_session
    assert inputs(folder, strict=True) == truth
    archive = tmp_path / "archive.jsonl"
    archive.write_text("".join(f"{to_archive(row)}\n" for row in logs.rows), "utf-8")
    assert inputs(archive) == truth
    assert inputs(archive, folder) == truth
    assert inputs(archive, *sorted(folder.glob("*.jsonl"))[1:]) == truth


def test_a_log_that_is_read_in_steps_has_the_same_answers(log: Any, tmp_path: Path) -> None:
    """LOG-06, LOG-21"""
    for number in (1, 2, 3):
        answer(log, number, ("msg_gateway", None, "msg_gateway")[number - 1], None, blocks=2)
    lines = [json.dumps(line) + "\n" for line in log.lines]
    path, cache, found = tmp_path / "log.jsonl", Cache(tmp_path / "cache"), list[int]()
    for count in range(1, len(lines) + 1):
        path.write_text("".join(lines[:count]), "utf-8")
        found = inputs(path, cache=cache)

    assert found == [1001, 1002, 1003]
