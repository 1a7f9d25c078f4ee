"""Fixtures: models on the loopback API, and the check for leaks."""

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
from cc_messages import ClaudeCodeTransport
from cc_model import ClaudeCodeModel, ClaudeCodeProvider
from processes import is_at_rest, of_others

SHARED = ("repeating_provider", "shared_provider", "single_provider", "slow_provider")
EVENT_DELAY = 0.02  # seconds between stream events, so that a test can leave in the middle


@contextmanager
def started(api: LoopbackServer, pool: int, *, max_retries: int = 0) -> Generator[ClaudeCodeProvider]:
    """Yield a provider, by default without retries, for tests with their own event loops."""
    provider = ClaudeCodeProvider(env=api.env(), pool=pool, max_retries=max_retries)
    yield provider
    asyncio.run(provider.aclose())


@pytest.fixture(scope="session")
def shared_provider(worker_transport: ClaudeCodeTransport) -> ClaudeCodeProvider:
    """Return a provider of the processes for all tests in a worker that only run agents."""
    return ClaudeCodeProvider.over(worker_transport, max_retries=0)


@pytest.fixture(scope="session")
def single_provider(single_transport: ClaudeCodeTransport) -> ClaudeCodeProvider:
    """Return a provider of a single process, so that a waiting request would block all others."""
    return ClaudeCodeProvider.over(single_transport, max_retries=0)


@pytest.fixture(scope="session")
def slow_worker_api() -> Iterator[LoopbackServer]:
    with LoopbackServer(event_delay=EVENT_DELAY) as api:
        yield api


@pytest.fixture(scope="session")
def slow_provider(slow_worker_api: LoopbackServer) -> Iterator[ClaudeCodeProvider]:
    """Yield shared processes with a slow API, so that tests can leave streams in the middle."""
    with started(slow_worker_api, 2) as provider:
        yield provider


@pytest.fixture(scope="session")
def repeating_provider(slow_worker_api: LoopbackServer) -> Iterator[ClaudeCodeProvider]:
    """Yield a shared process on the same API, for a client with one retry."""
    with started(slow_worker_api, 1, max_retries=1) as provider:
        yield provider


@pytest.fixture(autouse=True)
def nothing_is_left(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """ARCH-20: check after each test that the processes have exited and the folder for temporary files is empty.

    Shared processes outlive the test, with folders elsewhere, but must be at rest.
    """
    others = of_others()
    if shared := [request.getfixturevalue(name) for name in SHARED if name in request.fixturenames]:
        yield
        deadline = time.monotonic() + 30
        while busy := [provider for provider in shared if not is_at_rest(provider)]:
            assert time.monotonic() < deadline, f"not at rest: {busy}"
            time.sleep(0.002)
        return
    tmp_path_factory.getbasetemp()  # pytest creates a folder at first use, which must not be in a test's folder
    # Not below `tmp_path`, which is too long for socket paths.
    folder = Path(tempfile.mkdtemp(prefix="t-"))
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield
    _, alive = psutil.wait_procs({*psutil.Process().children(recursive=True)} - others, timeout=5)
    leftovers = [*folder.iterdir()]
    shutil.rmtree(folder)
    assert not alive, f"processes left: {alive}"
    assert not leftovers


@pytest.fixture
def loopback(shared_api: LoopbackServer) -> LoopbackServer:
    """Return the worker's loopback API, as if it had just started."""
    return shared_api


@pytest.fixture
def own_api() -> Iterator[LoopbackServer]:
    """Yield a loopback API for tests that write to the API's home, or read all files there."""
    with LoopbackServer() as api:
        yield api


@pytest.fixture
def slow_api(slow_worker_api: LoopbackServer) -> Iterator[LoopbackServer]:
    """Return `slow_provider`'s API, as if it had just started."""
    slow_worker_api.reset()
    yield slow_worker_api
    assert not slow_worker_api.errors


@pytest.fixture
def provider(shared_provider: ClaudeCodeProvider, loopback: LoopbackServer) -> ClaudeCodeProvider:
    """Return Claude Code on the loopback API, with processes that other tests used before."""
    return shared_provider


@pytest.fixture
def model(provider: ClaudeCodeProvider) -> ClaudeCodeModel:
    return ClaudeCodeModel(provider=provider)


@pytest.fixture
async def own_provider(nothing_is_left: None, loopback: LoopbackServer) -> AsyncIterator[ClaudeCodeProvider]:
    """Yield a provider with a single process that no other test uses.

    With a second process, no request would wait for a process that a busy machine empties slowly.
    """
    async with ClaudeCodeProvider(env=loopback.env(), pool=1, max_retries=0) as provider:
        yield provider


@pytest.fixture
def own_model(own_provider: ClaudeCodeProvider) -> ClaudeCodeModel:
    return ClaudeCodeModel(provider=own_provider)
