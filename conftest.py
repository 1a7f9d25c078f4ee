"""Fixtures of all packages' tests: no login of this machine, and one loopback API for each test worker."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from cc_loopback import LoopbackServer

# Each worker and each interpreter of a test would compile the same files again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A busy machine is no failure, and the fixtures that property tests use are the same for each example.
settings.register_profile(
    "unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
settings.load_profile("unhurried")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True, scope="session")
def no_login_of_this_machine() -> Iterator[None]:
    """Take every login and key of this machine out of the environment of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [*os.environ]:
            if name.startswith(("ANTHROPIC_", "CLAUDE_")):
                patch.delenv(name)
        yield


@pytest.fixture(scope="session")
def worker_api(no_login_of_this_machine: None) -> Iterator[LoopbackServer]:
    """A loopback API for all tests of a worker, so that a process that uses it can serve more than one test.

    Tests take `shared_api`, which is the same server, reset. Only fixtures of shared processes take this one.
    """
    with LoopbackServer() as server:
        yield server


@pytest.fixture
def shared_api(worker_api: LoopbackServer) -> Iterator[LoopbackServer]:
    """The loopback API of the worker, as if it had just started.

    A test that takes it leaves no request under way: its processes have ended, or are back in their shared pool.
    """
    worker_api.reset()
    yield worker_api
    assert not worker_api.errors, f"a responder of the loopback API raised: {worker_api.errors}"


@pytest.hookimpl(optionalhook=True)  # a package's tests alone run without it
def pytest_xdist_auto_num_workers() -> int:
    """Half as many again as processors: tests of processes wait much of their time."""
    return max(2, (os.cpu_count() or 1) * 3 // 2)
