"""Spending by session and process, with inherited totals and processes without a total."""

import random
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from cc_convert.logs import Logs, Prices, read_logs
from cc_convert.reconcile import Comparison, reconcile

Maker: TypeAlias = Callable[..., Any]
Read: TypeAlias = Callable[..., Logs]
ONE = (100, 20, 1000, 200, 100)
PRICE = (100 * 2 + 20 * 10 + 1000 * 0.2 + 200 * 2.5 + 100 * 4) / 1e6
START = datetime.fromisoformat("2026-11-20T10:00:30Z").timestamp()


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Writes logs, each as a session's file, the later ones first, and reads them."""

    def reading(*logs: Any, strict: bool = False) -> Logs:
        paths = [log.write(tmp_path / f"{9 - number}-{log.session}.jsonl") for number, log in enumerate(logs)]
        return read_logs(*paths, strict=strict)

    return reading


def state(log: Any, requests: int, minutes: float, start: float = START) -> None:
    """Add the CLI's total for some requests, after some minutes of processes."""
    totals = (*(requests * one for one in ONE), requests * PRICE)
    milliseconds = {"startTime": int(start * 1000), "totalDuration": int(minutes * 60_000)}
    log.state({"claude-sonnet-5": totals}, **milliseconds)


def fork_of(maker: Maker, parent: Any, session: str, start: str, **marks: object) -> Any:
    """Write a fork: a first note, and copies of the parent's answers."""
    fork = maker(session, start=start)
    fork.lines.append({"type": "queue-operation", "sessionId": session, "timestamp": fork.time()})
    fork.lines += [line | {"sessionId": session} | marks for line in parent.lines if "uuid" in line]
    return fork


def spent(logs: Logs) -> dict[str, tuple[int, int]]:
    """Return for each session the number of requests, and the number that the other rows represent."""
    sessions = sorted({row.session for row in logs.rows})
    rows = {session: [row for row in logs.rows if row.session == session] for session in sessions}
    return {
        session: (
            sum(row.kind == "request" for row in session_rows),
            sum(row.input for row in session_rows if row.kind == "unlogged") // 100,
        )
        for session, session_rows in rows.items()
    }


def compared(logs: Logs) -> dict[str, Comparison]:
    return {one.session: one for one in reconcile(logs)}


@pytest.mark.parametrize("strict", [False, True])
def test_copies_without_a_mark_belong_to_the_session_that_began_first(maker: Maker, read: Read, strict: bool) -> None:
    """LOG-33: CLI 2.1.321 and older. The parent's other spending is not counted again."""
    parent = maker("parent")
    parent.answers("msg_1")
    parent.compaction(8000)
    state(parent, 2, 5)
    fork = fork_of(maker, parent, "fork", "2026-11-20T12:00:00+00:00")
    fork.answer("msg_2")
    state(fork, 3, 6)

    logs = read(parent, fork, strict=strict)

    assert spent(logs) == {"parent": (1, 1), "fork": (1, 0)}
    assert {row.parent for row in logs.rows if row.session == "fork"} == {"parent"}
    assert all(one.agrees for one in reconcile(logs))


def sdk_fork_of(maker: Maker, parent: Any, session: str, start: str = "2026-11-20T12:59:00+00:00") -> Any:
    """Write a fork by the SDK: it names the parent, changes ids, and takes no total over."""
    fork = maker(session, start=start)
    fork.lines = [
        line
        | {"sessionId": session, "uuid": f"{session}-{line['uuid']}"}
        | {"forkedFrom": {"sessionId": parent.session, "messageUuid": line["uuid"]}}
        for line in parent.lines
        if "uuid" in line
    ]
    return fork


def test_a_fork_by_the_sdk_leaves_requests_with_their_session(maker: Maker, read: Read) -> None:
    """LOG-33."""
    parent = maker("parent")
    parent.answers("msg_1", "msg_2")
    state(parent, 2, 5)
    fork = sdk_fork_of(maker, parent, "fork")
    second = sdk_fork_of(maker, fork, "second")
    fork.answer("msg_3")
    state(fork, 2, 1, start=datetime.fromisoformat("2026-11-20T12:59:00Z").timestamp())

    logs = read(parent, fork, second)

    assert spent(logs) == {"parent": (2, 0), "fork": (1, 1)}
    assert all(one.agrees for one in reconcile(logs))


@pytest.mark.parametrize("has_answer", [False, True])
def test_a_fork_that_spends_nothing_after_a_compaction_has_no_part(maker: Maker, read: Read, has_answer: bool) -> None:
    """LOG-33: then nothing in either file names the other session, and both have the same total."""
    parent = maker("parent")
    if has_answer:
        parent.answer("msg_1")
    parent.compaction(8000)
    state(parent, 2, 1)
    fork = maker("fork", start="2026-11-20T12:00:00+00:00")
    fork.lines = [line | {"sessionId": "fork"} for line in parent.lines[-2:-1]]
    state(fork, 2, 2)

    logs = read(parent, fork)

    assert spent(logs) == {"parent": (has_answer, 2 - has_answer)}
    assert all(one.agrees for one in reconcile(logs))


def test_a_compaction_in_a_fork_counts_while_its_parent_goes_on(maker: Maker, read: Read) -> None:
    """LOG-33: a fork takes over a total that the copies reach."""
    parent = maker("parent")
    parent.answer("msg_1")
    state(parent, 1, 1)
    fork = fork_of(maker, parent, "fork", "2026-11-20T12:00:00+00:00", requestSessionId="parent")
    fork.compaction(8000)
    state(fork, 2, 2)
    parent.answer("msg_2", timestamp="2026-11-20T11:00:00Z")
    state(parent, 2, 3)
    second = fork_of(maker, fork, "second", "2026-11-20T14:00:00+00:00", requestSessionId="parent")
    second.answer("msg_3")
    state(second, 3, 3)

    logs = read(parent, fork, second)

    assert spent(logs) == {"parent": (2, 0), "fork": (0, 1), "second": (1, 0)}
    assert all(one.agrees for one in reconcile(logs))


def test_a_killed_process_hides_no_compaction_of_the_next_one(log: Any, read: Read) -> None:
    """LOG-32, LOG-30: the next total has the process's running time. Older requests are in no total, no difference."""
    log.answer("msg_1")
    state(log, 1, 1)
    log.answer("msg_2", timestamp="2026-11-20T11:00:00Z")
    log.lines.append({"type": "system", "sessionId": "s1", "timestamp": "2026-11-20T12:00:00.000Z"})
    state(log, 3, 2)

    logs = read(log)

    assert spent(logs) == {"s1": (2, 2)}
    assert compared(logs)["s1"].agrees
    assert (compared(logs)["s1"].outside[:5], compared(logs)["s1"].doubtful) == (ONE, sum(ONE))
    assert [row.cost for row in logs.priced(mode="logged")] == [pytest.approx(PRICE), None, pytest.approx(2 * PRICE)]


def test_a_total_that_began_later_covers_no_older_request(log: Any, read: Read) -> None:
    """LOG-32: the first process was killed before it noted a total."""
    log.answer("msg_1")
    log.answer("msg_2", timestamp="2026-11-20T12:00:00Z")
    state(log, 3, 2, start=datetime.fromisoformat("2026-11-20T11:59:00Z").timestamp())

    logs = read(log)

    assert (spent(logs), compared(logs)["s1"].agrees) == ({"s1": (2, 2)}, True)


def _add(log: Any, process: list[int], number: int) -> None:
    """Add a request by a process whose total so far is `process`."""
    counts = (100 + number, 50 + 7 * number, 5000 + 11 * number, 1000 + number, 2000)
    fresh, output, cached, short, hour = counts
    lifetimes = {"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": hour}
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    numbers = dict(zip(names, (fresh, output, cached, short + hour), strict=True))
    log.answer(usage=log.usage(**numbers, cache_creation=lifetimes))
    process[:] = [total + count for total, count in zip(process, counts, strict=True)]


def _end(log: Any, process: list[int], seconds: int) -> None:
    fresh, output, cached, short, hour = process
    cost = Prices().cost_of((fresh, output, cached, short, hour, 0, 0), "claude-sonnet-5") or 0.0
    log.state({"claude-sonnet-5": (*process, cost)}, startTime=int(START * 1000), totalDuration=seconds * 1000)


def at_once(log: Any, makers: str, ends: str) -> list[int]:
    """Write a session's first total, then requests by processes at once, and their ends; return the tokens by kind.

    `makers` has the process of each request by its letter, `ends` those of the totals in order, and by a further
    process that resumes the last one.
    """
    first = [0] * 5
    _add(log, first, 1)
    _add(log, first, 2)
    _end(log, first, 150)
    processes = {name: [*first] for name in sorted({*makers})}
    for number, name in enumerate(makers, start=3):
        _add(log, processes[name], number)
    for seconds, name in zip((740, 610, 690, 650), ends, strict=False):
        _end(log, processes[name], seconds)
    _add(log, last := processes[ends[-1]], len(makers) + 3)
    _end(log, last, 900)
    columns = zip(first, *processes.values(), strict=True)
    return [one + sum(total - one for total in totals) for one, *totals in columns]


@pytest.mark.parametrize("seed", range(150))
def test_processes_at_once_never_give_wrong_sums_silently(log: Any, read: Read, seed: int) -> None:
    """LOG-32, LOG-30: by any process, in any order, also if one noted no total."""
    chance = random.Random(seed)
    names = "wxyz"[: chance.choice([2, 3, 4])]
    makers = names + "".join(chance.choices(names, k=chance.randrange(2 * len(names))))
    ends = "".join(chance.sample(names, len(names) - chance.choice([0, 0, 0, 1])))
    served = at_once(log, makers, ends)

    logs = read(log)

    counted = [sum(column) for column in zip(*(row[9:14] for row in logs.rows), strict=True)]
    assert counted == served or compared(logs)["s1"].doubtful or not compared(logs)["s1"].agrees


def test_a_total_without_kinds_of_writes_is_split_by_cost(log: Any, read: Read) -> None:
    """LOG-32: CLI 2.1.306."""
    log.answer("msg_1")
    log.state({"claude-sonnet-5": (*(2 * one for one in ONE), 2 * PRICE)})
    usage = log.lines[-1]["modelUsage"]["claude-sonnet-5"]
    del usage["cacheCreationEphemeral5mInputTokens"], usage["cacheCreationEphemeral1hInputTokens"]

    logs = read(log)

    assert [row[9:14] for row in logs.rows] == [ONE, ONE]
    assert all(one.agrees for one in reconcile(logs))


def test_copies_count_in_a_fork_without_its_parent(maker: Maker, read: Read) -> None:
    """LOG-33, LOG-30"""
    parent = maker("parent")
    parent.answer("msg_1")
    fork = fork_of(maker, parent, "fork", "2026-11-20T12:00:00+00:00", requestSessionId="parent")
    fork.answer("msg_2")
    state(fork, 3, 6)

    logs = read(fork)

    assert (spent(logs), compared(logs)["fork"].agrees) == ({"parent": (1, 0), "fork": (1, 1)}, True)
