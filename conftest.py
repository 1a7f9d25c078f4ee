"""Fixtures for all packages' tests: none of this machine's logins, and a loopback API for each test worker."""

import asyncio
import gc
import os
import re
import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from cc_loopback import LoopbackServer

if TYPE_CHECKING:
    from cc_messages import ClaudeCodeTransport

# The garbage collector would visit all imported objects again and again: two fifths of the time to collect the tests.
gc.disable()

# A package that is tried alone has no such plugins.
pytest_plugins = ["affected", "cli_starts"] if find_spec("affected") else []

# Each worker and each test's interpreter would compile the same files again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Tests send Ctrl-C to programs. `nohup` and some CI systems ignore SIGINT, and programs inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is not a failure, property tests use the same fixtures for each example, and CI tries more of them.
settings.register_profile(
    "unhurried",
    deadline=None,
    max_examples=100 if os.environ.get("CI") else 25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("unhurried")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def loop_for_examples(request: pytest.FixtureRequest) -> Iterator[None]:
    """Give `run_sync()` in an example an event loop: pydantic-ai would make one, and leave it open."""
    if request.path.parent.name != "examples":
        yield
        return
    with asyncio.Runner() as runner:
        asyncio.set_event_loop(runner.get_loop())
        yield
        asyncio.set_event_loop(None)


@pytest.fixture(autouse=True, scope="session")
def no_login_of_this_machine() -> Iterator[None]:
    """Remove every login and key from the tests' environment."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [*os.environ]:
            if name.startswith(("ANTHROPIC_", "CLAUDE_")):
                patch.delenv(name)
        yield


@pytest.fixture(scope="session")
def worker_api(no_login_of_this_machine: None) -> Iterator[LoopbackServer]:
    """Yield a loopback API for all tests in a worker, so that its processes can serve several tests.

    Tests take `shared_api`, the same server after a reset. Only fixtures with shared processes take this fixture.
    """
    with LoopbackServer() as server:
        yield server


@pytest.fixture
def shared_api(worker_api: LoopbackServer) -> Iterator[LoopbackServer]:
    """Yield the worker's loopback API, as if it had just started.

    After a test, no request is running: the processes have ended, or are back in a shared pool.
    """
    worker_api.reset()
    yield worker_api
    assert not worker_api.errors, f"a responder of the loopback API raised: {worker_api.errors}"


@pytest.fixture(scope="session")
def worker_transport(worker_api: LoopbackServer) -> Iterator["ClaudeCodeTransport"]:
    """Yield a transport for all tests in a worker that only need processes; a test takes `shared_api` with it."""
    with _transport(worker_api, size=5) as transport:
        yield transport


@pytest.fixture(scope="session")
def single_transport(worker_api: LoopbackServer) -> Iterator["ClaudeCodeTransport"]:
    """Yield such a transport with one process, in which the next request meets all traces of the last."""
    with _transport(worker_api, size=1) as transport:
        yield transport


@contextmanager
def _transport(api: LoopbackServer, size: int) -> Generator["ClaudeCodeTransport"]:
    from cc_messages import ClaudeCodeTransport
    from cc_session import PoolLimits

    # No process starts ahead, in the middle of another test, or ends after many requests of others.
    transport = ClaudeCodeTransport(env=api.env(), pool=PoolLimits(size=size, prewarm=0, max_uses=100_000))
    yield transport
    transport.close()


@pytest.hookimpl(optionalhook=True)  # a package's tests alone run without it
def pytest_xdist_auto_num_workers() -> int:
    """Return half as many again as processors: tests mostly wait for processes."""
    return max(2, (os.cpu_count() or 1) * 3 // 2)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Enable the garbage collector, for what the tests make and not for what they import."""
    gc.freeze()
    gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave modules out that have no test of the wanted rings: to import all takes each worker seconds."""
    if collection_path.suffix != ".py":
        return None
    expression: str = config.option.markexpr
    rings = {match[0] for match in re.finditer(r"(?<!not )\b(?:worlds|deaths|browser|slow)\b", expression)}
    text = collection_path.read_text("utf-8")
    if rings:
        return None if any(f"mark.{ring}" in text for ring in rings) else True
    whole = re.search(r"^pytestmark = \[?\s*pytest\.mark\.(\w+)", text, re.MULTILINE)
    return True if whole and f"not {whole[1]}" in expression else None
