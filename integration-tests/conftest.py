"""Fixtures of the integration tests: models on the loopback API, and the check for leaks."""

import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider
from messages_server import MessagesServer, serving
from processes import is_at_rest, of_others

SHARED = ("repeating_provider", "shared_provider", "single_provider", "slow_provider")
EVENT_DELAY = 0.02  # seconds between two events of a stream, so that a test can leave it in the middle


@contextmanager
def started(api: LoopbackServer, pool: int, *, max_retries: int = 0) -> Generator[ClaudeCodeProvider]:
    """Yield a provider, by default without retries, for tests with event loops of their own."""
    provider = ClaudeCodeProvider(env=api.env(), pool=pool, max_retries=max_retries)
    yield provider
    asyncio.run(provider.aclose())


@pytest.fixture(scope="session")
def shared_provider(worker_api: LoopbackServer) -> Iterator[ClaudeCodeProvider]:
    """Yield the shared processes for all tests of a worker that only run agents."""
    with started(worker_api, 3) as provider:
        yield provider


@pytest.fixture(scope="session")
def single_provider(worker_api: LoopbackServer) -> Iterator[ClaudeCodeProvider]:
    """Yield one shared process, so that a waiting request would block all others."""
    with started(worker_api, 1) as provider:
        yield provider


@pytest.fixture(scope="session")
def slow_worker_api() -> Iterator[LoopbackServer]:
    with LoopbackServer(event_delay=EVENT_DELAY) as api:
        yield api


@pytest.fixture(scope="session")
def slow_provider(slow_worker_api: LoopbackServer) -> Iterator[ClaudeCodeProvider]:
    """Yield shared processes with a slow API, so that tests can leave its streams in the middle."""
    with started(slow_worker_api, 2) as provider:
        yield provider


@pytest.fixture(scope="session")
def repeating_provider(slow_worker_api: LoopbackServer) -> Iterator[ClaudeCodeProvider]:
    """Yield a shared process on the same API, for a client with one retry."""
    with started(slow_worker_api, 1, max_retries=1) as provider:
        yield provider


@pytest.fixture(scope="session")
def messages_server(worker_api: LoopbackServer) -> Iterator[MessagesServer]:
    """Yield `python -m cc_messages serve`, one for all tests of a worker."""
    with serving(worker_api) as server:
        yield server


@pytest.fixture(autouse=True)
def nothing_is_left(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Check after each test that its processes have exited, and that the folder for temporary files is empty: ARCH-20.

    Shared processes outlive the test, and have their folders elsewhere: they have to be at rest.
    """
    others = of_others()
    if shared := [request.getfixturevalue(name) for name in SHARED if name in request.fixturenames]:
        yield
        deadline = time.monotonic() + 30
        while busy := [provider for provider in shared if not is_at_rest(provider)]:
            assert time.monotonic() < deadline, f"not at rest: {busy}"
            time.sleep(0.002)
        return
    if "messages_server" in request.fixturenames:
        yield
        return
    tmp_path_factory.getbasetemp()  # pytest creates its own folder at its first use, which must not be in a test's
    # Not below `tmp_path`, whose length leaves too little for the path of a socket.
    folder = Path(tempfile.mkdtemp(prefix="t-"))
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield
    _, alive = psutil.wait_procs({*psutil.Process().children(recursive=True)} - others, timeout=5)
    left = [*folder.iterdir()]
    shutil.rmtree(folder)
    assert not alive, f"processes left: {alive}"
    assert not left


@pytest.fixture
def loopback(shared_api: LoopbackServer) -> LoopbackServer:
    """Return the loopback API of the worker, as if it had just started."""
    return shared_api


@pytest.fixture
def own_api() -> Iterator[LoopbackServer]:
    """Yield a loopback API for tests that write to its home, or read all its files."""
    with LoopbackServer() as api:
        yield api


@pytest.fixture
def slow_api(slow_worker_api: LoopbackServer) -> Iterator[LoopbackServer]:
    """Return the API of `slow_provider`, as if it had just started."""
    slow_worker_api.reset()
    yield slow_worker_api
    assert not slow_worker_api.errors


@pytest.fixture
def provider(shared_provider: ClaudeCodeProvider, loopback: LoopbackServer) -> ClaudeCodeProvider:
    """Return Claude Code on the loopback API, on processes that other tests have used before."""
    return shared_provider


@pytest.fixture
def model(provider: ClaudeCodeProvider) -> ClaudeCodeModel:
    return ClaudeCodeModel(provider=provider)


@pytest.fixture
async def own_provider(nothing_is_left: None, loopback: LoopbackServer) -> AsyncIterator[ClaudeCodeProvider]:
    """Yield a provider of one process for tests about processes: no other test uses it.

    With room for another one, a request would not wait for a process that a busy machine takes long to empty.
    """
    async with ClaudeCodeProvider(env=loopback.env(), pool=1, max_retries=0) as provider:
        yield provider


@pytest.fixture
def own_model(own_provider: ClaudeCodeProvider) -> ClaudeCodeModel:
    return ClaudeCodeModel(provider=own_provider)
