"""Which process answers, and how many there are: decided here over sessions that only pretend."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast

import anyio
import pytest

from cc_messages.conversation import Held, Message
from cc_messages.pool import Route, WorkerPool
from cc_messages.request import LaunchKey, MessagesRequest, parse_request
from cc_messages.worker import Worker
from cc_types import ClaudeCodeError, CLINotFoundError

if TYPE_CHECKING:
    from cc_session import Session

pytestmark = pytest.mark.timeout(5)


class PretendedSession:
    """As much of a session as the pool looks at."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.state = "idle"
        self.has_closed = asyncio.Event()

    @property
    def is_running(self) -> bool:
        return self.state != "dead"

    async def close(self) -> None:
        self.state = "dead"
        self.has_closed.set()


class Opener:
    """Opens sessions when it is let."""

    def __init__(self) -> None:
        self.pids: list[int] = []
        self.permits = asyncio.Semaphore(100)
        self.error: Exception | None = None

    def hold(self) -> None:
        """Let no session open any more, but for one with each `permits.release()`."""
        self.permits = asyncio.Semaphore(0)

    def let_go(self) -> None:
        for _ in range(100):
            self.permits.release()

    async def __call__(self, launch: LaunchKey) -> Worker:
        self.pids.append(len(self.pids) + 1)
        session = PretendedSession(self.pids[-1])
        await self.permits.acquire()
        if self.error is not None:
            raise self.error
        return Worker(launch, cast("Session", session))


def request(system: str = "") -> MessagesRequest:
    messages = [{"role": "user", "content": "Hello."}]
    body: dict[str, Any] = {"model": "m", "max_tokens": 9, "system": system, "messages": messages}
    return parse_request(json.dumps(body).encode())


@pytest.fixture
async def opener() -> Opener:
    return Opener()


@pytest.fixture
def make(opener: Opener) -> Callable[..., WorkerPool]:
    def make(size: int = 2, idle_seconds: float = 60) -> WorkerPool:
        return WorkerPool(opener, size=size, idle_seconds=idle_seconds)

    return make


async def turns_of_the_loop() -> None:
    """Let every task go as far as it can."""
    await anyio.wait_all_tasks_blocked()


async def failure(work: Awaitable[object]) -> ClaudeCodeError:
    with pytest.raises(ClaudeCodeError) as caught:
        await work
    return caught.value


async def test_a_free_process_of_the_same_kind_is_used_again(make: Callable[..., WorkerPool], opener: Opener) -> None:
    pool = make()
    first = await pool.acquire(request())
    pool.release(first)
    assert await pool.acquire(request()) is first
    assert opener.pids == [1]
    assert pool.routes == {Route.START: 1, Route.REBUILD: 1}


async def test_requests_beyond_the_size_wait_and_are_served_in_order(make: Callable[..., WorkerPool]) -> None:
    pool = make(size=1)
    worker = await pool.acquire(request())
    served: list[int] = []

    async def serve(number: int) -> None:
        pool.release(await pool.acquire(request()))
        served.append(number)

    tasks = [asyncio.create_task(serve(number)) for number in range(5)]
    await turns_of_the_loop()
    assert not served
    pool.release(worker)
    await asyncio.gather(*tasks)
    assert served == [*range(5)]


async def test_no_more_than_two_processes_start_at_once_and_who_waits_takes_what_comes_free(
    make: Callable[..., WorkerPool], opener: Opener
) -> None:
    pool = make(size=8)
    opener.hold()
    tasks = [asyncio.create_task(pool.acquire(request())) for _ in range(4)]
    await turns_of_the_loop()
    assert opener.pids == [1, 2]
    opener.permits.release()
    await turns_of_the_loop()
    assert opener.pids == [1, 2, 3]

    pool.release(tasks[0].result())
    await turns_of_the_loop()
    assert tasks[3].result() is tasks[0].result()
    opener.let_go()
    await asyncio.gather(*tasks)
    assert opener.pids == [1, 2, 3]


async def test_another_launch_key_takes_the_place_of_the_longest_unused(make: Callable[..., WorkerPool]) -> None:
    pool = make(size=2)
    workers = [await pool.acquire(request()) for _ in range(2)]
    for worker in reversed(workers):
        pool.release(worker)
    other = await pool.acquire(request("Be brief."))
    assert other.launch.system == "Be brief."
    await turns_of_the_loop()
    assert [worker.is_alive for worker in workers] == [True, False]


@pytest.mark.parametrize(("messages", "room", "is_taken"), [(2, True, True), (102, True, False), (102, False, True)])
async def test_a_long_conversation_that_waits_for_tools_keeps_its_process_while_there_is_room(
    messages: int, room: bool, is_taken: bool, make: Callable[..., WorkerPool]
) -> None:
    """MSG-12. A short one is written again in less time than a process needs to start."""
    call = Message("assistant", ({"type": "tool_use", "id": "t", "name": "f", "input": {}},))
    pool = make(size=2 if room else 1)
    worker = await pool.acquire(request())
    worker.held = [Held(call, "uuid", is_cut=True)] * messages
    pool.release(worker)
    assert (await pool.acquire(request()) is worker) == is_taken


async def test_a_dead_process_is_not_used_again(make: Callable[..., WorkerPool], opener: Opener) -> None:
    pool = make()
    worker = await pool.acquire(request())
    pool.release(worker)
    await worker.session.close()
    assert pool.pids == []
    assert await pool.acquire(request()) is not worker
    assert opener.pids == [1, 2]


async def test_a_process_that_comes_back_dead_makes_room(make: Callable[..., WorkerPool], opener: Opener) -> None:
    pool = make(size=1)
    worker = await pool.acquire(request())
    waiting = asyncio.create_task(pool.acquire(request()))
    await turns_of_the_loop()
    await worker.session.close()
    pool.release(worker)
    assert await waiting is not worker
    assert opener.pids == [1, 2]


async def test_a_discarded_process_is_closed_and_makes_room(make: Callable[..., WorkerPool]) -> None:
    pool = make(size=1)
    worker = await pool.acquire(request())
    waiting = asyncio.create_task(pool.acquire(request()))
    await turns_of_the_loop()
    pool.discard(worker)
    assert await waiting is not worker
    await turns_of_the_loop()
    assert not worker.is_alive


async def test_a_start_that_fails_lets_those_who_wait_try(make: Callable[..., WorkerPool], opener: Opener) -> None:
    pool = make(size=1)
    opener.hold()
    opener.error = CLINotFoundError(path="/nowhere")
    tasks = [asyncio.create_task(pool.acquire(request())) for _ in range(3)]
    await turns_of_the_loop()
    assert opener.pids == [1]
    opener.let_go()
    assert [await failure(task) for task in tasks] == [opener.error] * 3
    assert opener.pids == [1, 2, 3]

    opener.error = None
    assert (await pool.acquire(request())).is_alive


async def test_a_start_that_is_cancelled_makes_room(make: Callable[..., WorkerPool], opener: Opener) -> None:
    pool = make(size=1)
    opener.hold()
    starting, waiting = (asyncio.create_task(pool.acquire(request())) for _ in range(2))
    await turns_of_the_loop()
    starting.cancel()
    await turns_of_the_loop()
    opener.let_go()
    assert (await waiting).pid == 2


async def test_whoever_is_about_to_come_back_is_waited_for(make: Callable[..., WorkerPool], opener: Opener) -> None:
    pool = make(size=2)
    worker = await pool.acquire(request())
    pool.settling(worker)
    waiting = asyncio.create_task(pool.acquire(request()))
    await turns_of_the_loop()
    assert not waiting.done()
    pool.release(worker)
    assert await waiting is worker
    assert opener.pids == [1]


async def test_a_process_that_nobody_wants_is_ended(make: Callable[..., WorkerPool]) -> None:
    """MSG-19."""
    pool = make(idle_seconds=0.01)
    worker = await pool.acquire(request())
    pool.release(worker)
    await asyncio.wait_for(cast("PretendedSession", worker.session).has_closed.wait(), 5)
    assert repr(pool) == "<WorkerPool idle=0 busy=0 starting=0 size=2>"


async def test_closing_ends_what_starts_waits_and_runs(make: Callable[..., WorkerPool], opener: Opener) -> None:
    pool = make(size=2)
    idle, busy = await pool.acquire(request()), await pool.acquire(request())
    pool.release(idle)
    opener.hold()
    starting = asyncio.create_task(pool.acquire(request("Be brief.")))
    waiting = asyncio.create_task(pool.acquire(request("Be brief.")))
    await turns_of_the_loop()
    closing = [asyncio.create_task(pool.aclose()) for _ in range(2)]
    for task in (starting, waiting):
        assert "closed" in str(await failure(task))
    assert "closed" in str(await failure(pool.acquire(request())))

    assert not any(task.done() for task in closing)
    pool.release(busy)
    await asyncio.gather(*closing)
    assert not idle.is_alive
    assert not busy.is_alive
    assert not starting.cancelled()

    opener.let_go()
    assert (await pool.acquire(request())).is_alive


async def test_a_session_that_cannot_be_closed_in_order_keeps_nobody_waiting(
    make: Callable[..., WorkerPool], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(self: Worker) -> None:
        raise OSError("no such file")

    pool = make(size=1)
    pool.release(await pool.acquire(request()))
    monkeypatch.setattr(Worker, "close", fail)
    await pool.aclose()
    assert "Ending a Claude Code process failed" in caplog.text
