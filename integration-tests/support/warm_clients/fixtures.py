"""Fixtures: clients of transports that run the real CLI on the loopback API, and a check for leftovers.

Most tests take `client`: one warm process, shared by all tests. `several` has five processes, `slow_client` a slow API.
`connect` makes clients with other options. The conftest of each package that needs them imports all.
"""

import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from cc_loopback import LoopbackServer, Respond
from cc_messages import ClaudeCodeTransport
from cc_session import PoolLimits

from .client import Client
from .leftovers import cli_processes, leftover_files
from .shared import Shared

__all__ = [
    "client", "connect", "make_api", "nothing_is_left", "private_temp_folder", "processes", "several", "shared",
    "shared_client", "shared_temp_folder", "slow_client",
]  # fmt: skip

Connect = Callable[..., Client]
SharedClient = Callable[..., Awaitable[Client]]
MakeAPI = Callable[..., LoopbackServer]
Processes = Callable[[], list[psutil.Process]]


# The worker's API, which these tests share, has its folder elsewhere because it is requested here.
@pytest.fixture(scope="session")
def shared_temp_folder(
    worker_api: LoopbackServer, worker_transport: ClaudeCodeTransport, single_transport: ClaudeCodeTransport
) -> Iterator[Path]:
    """Yield the folder for temporary files, and check it at the end."""
    # Not in pytest's own folder: its path is too long for a socket.
    folder = Path(tempfile.mkdtemp(prefix="t-"))
    yield folder
    for transport in (worker_transport, single_transport):  # other tests may go on with them
        transport.close()
    leftovers = leftover_files(folder, set())
    shutil.rmtree(folder)
    assert not leftovers, f"files left: {leftovers}"


@pytest.fixture(autouse=True)
def private_temp_folder(shared_temp_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Send a test's temporary files to that folder, and no files by other packages' tests in the same worker."""
    tmp_path_factory.getbasetemp()  # pytest creates its own folder at first use, and not in there
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(shared_temp_folder))
        patch.setattr(tempfile, "tempdir", str(shared_temp_folder))
        yield shared_temp_folder


@pytest.fixture(autouse=True)
def nothing_is_left(request: pytest.FixtureRequest, private_temp_folder: Path, shared: Shared) -> Iterator[None]:
    """Check after each test that it leaves no CLI process and no file.

    Shared processes end with the worker, which checks their files.
    """
    before = {*private_temp_folder.iterdir()}
    others = {process.pid for process in cli_processes()}
    yield
    others |= shared.pids
    _, alive = psutil.wait_procs([process for process in cli_processes() if process.pid not in others], timeout=10)
    assert not alive, f"processes left: {alive}"
    if "shared_client" not in request.fixturenames:
        leftovers = leftover_files(private_temp_folder, before)
        assert not leftovers, f"files left: {leftovers}"


@pytest.fixture(scope="session")
def shared(
    shared_temp_folder: Path,
    worker_api: LoopbackServer,
    worker_transport: ClaudeCodeTransport,
    single_transport: ClaudeCodeTransport,
) -> Iterator[Shared]:
    with ExitStack() as stack:
        yield Shared(worker_api, {"several": worker_transport, "one": single_transport}, stack)


@pytest.fixture
def make_api() -> Iterator[MakeAPI]:
    """Make APIs that outlive the processes from `connect`, which write to the API's folder to the last."""
    with ExitStack() as stack:

        def make(respond: Respond | None = None, *, event_delay: float = 0) -> LoopbackServer:
            return stack.enter_context(LoopbackServer(respond, event_delay=event_delay))

        yield make


@pytest.fixture
async def connect(shared_api: LoopbackServer, make_api: MakeAPI) -> AsyncIterator[Connect]:
    """Make clients with options for their transports; their processes end with the test."""
    async with AsyncExitStack() as stack:

        def make(
            *,
            api: LoopbackServer = shared_api,
            size: int = 8,
            prewarm: int = 0,
            idle_seconds: float = 300,
            timeout: float = 40,
            **options: Any,
        ) -> Client:
            options.setdefault("env", api.env())
            limits = PoolLimits(size=size, prewarm=prewarm, idle_seconds=idle_seconds)
            client = Client(api, ClaudeCodeTransport(pool=limits, **options), timeout)
            stack.push_async_callback(client.http.aclose)
            return client

        yield make


@pytest.fixture
async def shared_client(shared_api: LoopbackServer, shared: Shared) -> AsyncIterator[SharedClient]:
    """Return clients of shared transports, with a warm process and a conversation before the tests'.

    A test may end the processes, which are started anew, but not close the transport.
    """
    clients: list[Client] = []

    async def get(name: str, *, size: int, event_delay: float = 0, is_warm: bool = True) -> Client:
        client = shared.client(name, size, event_delay)
        clients.append(client)
        await client.begin(is_warm=is_warm)
        return client

    yield get
    for client in clients:
        await client.settled()
        assert not client.api.errors


@pytest.fixture
async def client(shared_client: SharedClient) -> Client:
    """Return a client with one process, so that the next request meets all traces of the last."""
    return await shared_client("one", size=1)


@pytest.fixture
async def several(shared_client: SharedClient) -> Client:
    """Return a client with a few processes, for concurrent requests or different kinds of processes."""
    return await shared_client("several", size=5, is_warm=False)


@pytest.fixture
async def slow_client(shared_client: SharedClient) -> Client:
    """Return a client with one process, and an API that sends an event each 30 ms: some 200 in a long answer."""
    return await shared_client("slow", size=1, event_delay=0.03)


@pytest.fixture
def processes(shared: Shared) -> Processes:
    """Return the test's CLI processes, without the shared."""
    others = {process.pid for process in cli_processes()}
    return lambda: [process for process in cli_processes() if process.pid not in others | shared.pids]
