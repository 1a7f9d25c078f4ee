"""Shared test code: the loopback API, transports to it that run the real CLI, and a check for leftovers.

Over 400 lines, and in one file: pytest finds the fixtures of a folder in one file.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, cast

import anyio
import httpx2
import psutil
import pytest
import uvicorn

from cc_loopback import LoopbackServer, Reply, Respond
from cc_messages import ClaudeCodeTransport, create_app
from cc_session import PoolLimits

MODEL = "claude-sonnet-5"
MESSAGES = "/v1/messages"
BODY: dict[str, Any] = {"model": MODEL, "max_tokens": 99, "messages": [{"role": "user", "content": "Hello."}]}
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
CALL: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}


def text(value: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": value, **fields}


def result(content: Any = "ok", identity: str = "toolu_1", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": identity, "content": content, **fields}


async def wait_for_ever(_body: dict[str, Any]) -> str:
    await anyio.sleep_forever()
    return ""


def always(words: str) -> Respond:
    return lambda _: words


# The worker's API, which these tests share, has its folder elsewhere because it is requested here.
@pytest.fixture(scope="session")
def shared_temp_folder(worker_api: LoopbackServer) -> Iterator[Path]:
    """Folder for all temp files of these tests, which is checked at the end."""
    # Not in pytest's own folder: its path is too long for a socket.
    folder = Path(tempfile.mkdtemp(prefix="t-"))
    yield folder
    left = without_files(folder, set())
    shutil.rmtree(folder)
    assert not left, f"files left: {left}"


@pytest.fixture(autouse=True)
def private_temp_folder(shared_temp_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Send the temp files of a test to that folder. Other packages' tests, in the same worker, must not write there."""
    tmp_path_factory.getbasetemp()  # pytest's own is created on first use, and not in there
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(shared_temp_folder))
        patch.setattr(tempfile, "tempdir", str(shared_temp_folder))
        yield shared_temp_folder


@pytest.fixture(autouse=True)
def nothing_is_left(request: pytest.FixtureRequest, private_temp_folder: Path, shared: Shared) -> Iterator[None]:
    """After each test no new CLI process and no new file is left.

    Except those of the shared processes: these end with the worker, and their files are checked then.
    """
    before = {*private_temp_folder.iterdir()}
    others = {process.pid for process in processes()}
    yield
    others |= shared.pids
    _, alive = psutil.wait_procs([process for process in processes() if process.pid not in others], timeout=10)
    assert not alive, f"processes left: {alive}"
    if "shared_client" not in request.fixturenames:
        left = without_files(private_temp_folder, before)
        assert not left, f"files left: {left}"


def without_files(folder: Path, before: set[Path]) -> list[list[str]]:
    """Wait until a folder has no other files, and return the remaining ones: a cancelled start ends late."""
    deadline = time.monotonic() + 10
    while (left := {*folder.iterdir()} - before) and time.monotonic() < deadline:
        time.sleep(0.01)
    return [sorted(map(str, [path, *path.rglob("*")])) for path in left]


def processes() -> list[psutil.Process]:
    """Return the CLI processes started by this process."""
    found: list[psutil.Process] = []
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if "claude" in child.name():
                found.append(child)
    return found


@dataclass
class Answered:
    """An HTTP response, read to its end."""

    status: int
    headers: dict[str, str]
    events: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    body: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def text(self) -> str:
        """The answer's texts, of a whole message or of a stream."""
        if self.body:
            return "".join(block.get("text", "") for block in self.body["content"])
        return "".join(
            event["delta"].get("text", "") for event in self.events if event["type"] == "content_block_delta"
        )

    @property
    def error(self) -> dict[str, Any]:
        """The error of an error body, or of the event that ended the stream."""
        return (self.body or self.events[-1])["error"]

    @property
    def stop_reason(self) -> str | None:
        if self.body:
            return self.body["stop_reason"]
        return next((event["delta"]["stop_reason"] for event in self.events if event["type"] == "message_delta"), None)


class Client:
    """A transport with the few calls that the tests need."""

    def __init__(self, api: LoopbackServer, transport: ClaudeCodeTransport, timeout: float) -> None:
        self.api = api
        self.transport = transport
        self.http = httpx2.AsyncClient(transport=transport, base_url="http://claude", timeout=timeout)
        self._starts_before = 0

    def body(self, *messages: Any, **fields: Any) -> dict[str, Any]:
        """A request; a text stands for a user message, `messages` alternate."""
        full: list[Any] = [
            message if isinstance(message, dict) else {"role": ("user", "assistant")[index % 2], "content": message}
            for index, message in enumerate(messages)
        ]
        return {"model": MODEL, "max_tokens": 100, "messages": full, **fields}

    def answers(self, reply: Reply | Respond) -> None:
        """Make the API answer with `reply` from now on, or with its result for a request's body."""

        def respond(body: dict[str, Any]) -> Reply | Awaitable[Reply]:
            return reply(body) if callable(reply) else reply

        self.api.respond = respond

    def script(self, *replies: Any) -> None:
        """Make the API give these answers in order."""
        left = [*replies]
        self.answers(lambda _: left.pop(0))

    async def ask(self, *messages: Any, headers: dict[str, str] | None = None, **fields: Any) -> Answered:
        """Send a request and read the whole response."""
        body = self.body(*messages, **fields)
        async with self.http.stream("POST", "/v1/messages", json=body, headers=headers) as response:
            data = await response.aread()
        reply = Answered(response.status_code, dict(response.headers))
        if response.headers["content-type"].startswith("text/event-stream"):
            reply.events = parse_sse(data)
        else:
            reply.body = json.loads(data)
        return reply

    def stream(self, *messages: Any, **fields: Any) -> Any:
        """Open a streamed response."""
        return self.http.stream("POST", "/v1/messages", json=self.body(*messages, stream=True, **fields))

    async def settled(self) -> None:
        """Wait until no process is in use."""
        await eventually(lambda: self.transport.stats().is_at_rest)

    async def answers_exactly(self, *messages: Any) -> None:
        """Check that the next request is answered, and that the API sees it once and nothing of earlier ones."""
        self.answers("Fine.")
        await self.settled()
        self.api.requests.clear()
        reply = await self.ask(*messages)
        assert (reply.status, reply.text) == (200, "Fine.")
        assert self.arrivals(*messages) == 1

    def arrivals(self, *messages: Any) -> int:
        """Return the number of requests with exactly these messages at the API.

        A request that the CLI makes by itself and cancels can still arrive much later.
        """
        sent = plain(self.body(*messages)["messages"])
        return sum(plain(body["messages"]) == sent for body in self.api.requests)

    async def begin(self, *, is_warm: bool) -> None:
        """Reset state from other tests. If `is_warm`, there is a process, with a conversation of no test."""
        await self.settled()
        if is_warm:
            self.answers("x")
            await self.ask("Between two tests.")
            await self.settled()
        self.api.reset()
        self._starts_before = self.transport.stats().starts

    @property
    def starts(self) -> int:
        """The number of processes started by this test; 0 if shared ones have served all."""
        return self.transport.stats().starts - self._starts_before

    @property
    def received(self) -> list[dict[str, Any]]:
        """The messages of the last request that reached the API."""
        return plain(self.api.requests[-1]["messages"])


class Shared:
    """The transports that tests share, created on first use, and the servers over them.

    Those of the same name are the same. One with a delay has an API of its own, which delays its events.
    """

    def __init__(self, api: LoopbackServer, stack: ExitStack) -> None:
        self._api, self._stack = api, stack
        self._apis: dict[float, LoopbackServer] = {0: api}
        self._transports: dict[str, ClaudeCodeTransport] = {}
        self._served: Served | None = None

    def api(self, event_delay: float = 0) -> LoopbackServer:
        if event_delay not in self._apis:
            self._apis[event_delay] = self._stack.enter_context(LoopbackServer(event_delay=event_delay))
        return self._apis[event_delay]

    def client(self, name: str, size: int, event_delay: float = 0) -> Client:
        api = self.api(event_delay)
        if name not in self._transports:
            self._transports[name] = transport = ClaudeCodeTransport(pool=size, env=api.env())
            self._stack.callback(lambda: asyncio.run(transport.aclose()))
        return Client(api, self._transports[name], 40)

    def served(self, client: Client) -> Served:
        if self._served is None:
            self._served = self._stack.enter_context(Served(client.api, client.transport))
        return self._served

    @property
    def pids(self) -> set[int]:
        """The processes that may outlive a test."""
        return {pid for transport in self._transports.values() for pid in transport.pids}


@pytest.fixture(scope="session")
def shared(worker_api: LoopbackServer, shared_temp_folder: Path) -> Iterator[Shared]:
    with ExitStack() as stack:
        yield Shared(worker_api, stack)


Connect = Callable[..., Client]
SharedClient = Callable[..., Awaitable[Client]]
MakeAPI = Callable[..., "LoopbackServer"]


@pytest.fixture
def make_api() -> Iterator[MakeAPI]:
    """Makes APIs that outlive the processes of `connect`: these write to the API's folder to the last."""
    with ExitStack() as stack:

        def make(respond: Respond | None = None, *, event_delay: float = 0) -> LoopbackServer:
            return stack.enter_context(LoopbackServer(respond, event_delay=event_delay))

        yield make


@pytest.fixture
async def connect(shared_api: LoopbackServer, make_api: MakeAPI) -> AsyncIterator[Connect]:
    """Makes clients of transports with options of their own; their processes end with the test."""
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
    """Gives clients of the transports that tests share, with a process that is warm and the conversation of no test.

    A test that takes one may end its processes, which are started anew, but not close the transport.
    """
    given: list[Client] = []

    async def get(name: str, *, size: int, event_delay: float = 0, is_warm: bool = True) -> Client:
        client = shared.client(name, size, event_delay)
        given.append(client)
        await client.begin(is_warm=is_warm)
        return client

    yield get
    for client in given:
        await client.settled()
        assert not client.api.errors


@pytest.fixture
async def client(shared_client: SharedClient) -> Client:
    """With one process, so that the next request finds all leftovers of the last one."""
    return await shared_client("one", size=1)


@pytest.fixture
async def several(shared_client: SharedClient) -> Client:
    """With a few processes, for requests at the same time, or that need processes of different kinds."""
    return await shared_client("several", size=5, is_warm=False)


@pytest.fixture
async def slow_client(shared_client: SharedClient) -> Client:
    """With one process, and an API that sends an event each 30 ms; a long answer has some 200 of them."""
    return await shared_client("slow", size=1, event_delay=0.03)


class Served:
    """The server over HTTP, in a thread of its own."""

    def __init__(self, api: LoopbackServer, transport: ClaudeCodeTransport, **options: Any) -> None:
        self.api = api
        self.transport = transport
        self.token = "the token"
        if "clients" not in options:
            options["token"] = self.token
        app = create_app(transport, **options)
        self._server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, timeout_graceful_shutdown=1))
        self._thread = threading.Thread(target=self._server.run)

    def __enter__(self) -> Self:
        self._thread.start()
        deadline = time.monotonic() + 20
        while not self._server.started:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        self.url = f"http://127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(20)
        assert not self._thread.is_alive()

    def http(self, *, token: str | None = None, **options: Any) -> httpx2.AsyncClient:
        """A client that has the token."""
        headers = {"x-api-key": self.token if token is None else token}
        # Unverified, since each one would load all certificates.
        return httpx2.AsyncClient(
            base_url=self.url, headers=headers, timeout=40, trust_env=False, verify=False, **options
        )

    async def post(
        self, body: dict[str, Any] = BODY, path: str = MESSAGES, *, token: str | None = None, **fields: Any
    ) -> httpx2.Response:
        """Send one request, with a client of its own."""
        async with self.http(token=token) as http:
            return await http.post(path, json={**body, **fields})


Serve = Callable[..., Served]


@pytest.fixture
def served(client: Client, shared: Shared) -> Served:
    """The server over the transport of `client`, which stays open for the next test."""
    return shared.served(client)


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Makes servers with options of their own, over the transport of a client."""
    with ExitStack() as stack:

        def make(client: Client, **options: Any) -> Served:
            return stack.enter_context(Served(client.api, client.transport, **options))

        yield make


@pytest.fixture
def clients_file(tmp_path: Path) -> Callable[[str], Path]:
    """Writes the file with the clients of a server."""
    path = tmp_path / "clients.toml"
    path.touch(0o600)

    def write(text: str) -> Path:
        path.write_text(text, encoding="utf-8")
        return path

    return write


async def eventually(condition: Callable[[], object]) -> None:
    """Wait for a condition without an event: the state of another thread or process."""
    with anyio.fail_after(20):
        while not condition():  # noqa: ASYNC110 - there is no event to wait for
            await anyio.sleep(0.005)


def parse_sse(data: bytes) -> list[dict[str, Any]]:
    """The events of a complete stream; each names its kind twice."""
    events: list[dict[str, Any]] = []
    for block in data.decode().split("\n\n")[:-1]:
        name, _, payload = block.partition("\n")
        event = json.loads(payload.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        events.append(event)
    return events


def plain(value: Any) -> Any:
    """Messages without allowed differences: cache breakpoints, and a text for a list of one text block."""
    if isinstance(value, list):
        return [plain(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    given = cast("dict[str, Any]", value)
    fields = {name: item if name == "input" else plain(item) for name, item in given.items() if name != "cache_control"}
    if "role" in fields and isinstance(text := fields["content"], str):
        fields["content"] = [{"type": "text", "text": text}]
    return fields


Processes = Callable[[], list[psutil.Process]]


@pytest.fixture(name="processes")
def own_processes(shared: Shared) -> Processes:
    """Finds new CLI processes, except those that tests share."""
    others = {process.pid for process in processes()}
    return lambda: [process for process in processes() if process.pid not in others | shared.pids]
