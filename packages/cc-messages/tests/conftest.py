"""What the tests share: the loopback API, transports to it that run the real CLI, and a look at what they leave."""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import anyio
import httpx2
import psutil
import pytest
import uvicorn

from cc_messages import ClaudeCodeTransport, create_app

if TYPE_CHECKING:
    from cc_loopback import LoopbackServer, Reply, Respond

MODEL = "claude-sonnet-5"


# Not for the session, which other packages' tests may be part of: they would write there, too.
@pytest.fixture(autouse=True, scope="module")
def private_temp_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Everything that is written to a temp folder in these tests goes to one that is looked into at the end."""
    tmp_path_factory.getbasetemp()  # pytest's own is made when it is first asked for, and not in there
    # Not in pytest's own folder, whose length leaves too little for the path of a socket.
    folder = Path(tempfile.mkdtemp(prefix="t-"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))
        patch.setattr(tempfile, "tempdir", str(folder))
        yield folder
    shutil.rmtree(folder)


@pytest.fixture(autouse=True)
def nothing_is_left(private_temp_folder: Path) -> Iterator[None]:
    """After each test there is no CLI process and no file that was not there before."""
    before = {*private_temp_folder.iterdir()}
    yield
    _, alive = psutil.wait_procs(processes(), timeout=5)
    assert not alive, f"processes left: {alive}"
    # A start that was given up is cleaned up after it has returned.
    deadline = time.monotonic() + 5
    while left := {*private_temp_folder.iterdir()} - before:
        assert time.monotonic() < deadline, f"files left: {[*map(files_in, left)]}"
        time.sleep(0.01)


def files_in(path: Path) -> list[str]:
    return sorted(map(str, [path, *path.rglob("*")]))


def processes() -> list[psutil.Process]:
    """The CLI processes that this one has started."""
    found: list[psutil.Process] = []
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if "claude" in child.name():
                found.append(child)
    return found


@dataclass
class Answered:
    """An HTTP response that was read to its end."""

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

    def body(self, *messages: Any, **fields: Any) -> dict[str, Any]:
        """A request; a text stands for a user message, `messages` alternate."""
        full: list[Any] = [
            message if isinstance(message, dict) else {"role": ("user", "assistant")[index % 2], "content": message}
            for index, message in enumerate(messages)
        ]
        return {"model": MODEL, "max_tokens": 100, "messages": full, **fields}

    def answers(self, reply: Reply | Respond) -> None:
        """Have the API answer with `reply` from now on, or with what it makes of a request's body."""

        def respond(body: dict[str, Any]) -> Reply | Awaitable[Reply]:
            return reply(body) if callable(reply) else reply

        self.api.respond = respond

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
        await eventually(lambda: "busy=0 starting=0" in repr(self.transport))

    def arrivals(self, *messages: Any) -> int:
        """How many requests with exactly these messages have reached the API.

        What the CLI asks by itself and breaks off again can still arrive when it has long settled.
        """
        sent = plain(self.body(*messages)["messages"])
        return sum(plain(body["messages"]) == sent for body in self.api.requests)

    @property
    def routes(self) -> dict[str, int]:
        return {str(route): count for route, count in self.transport.routes.items()}

    @property
    def received(self) -> list[dict[str, Any]]:
        """The messages of the last request that reached the API."""
        return plain(self.api.requests[-1]["messages"])


Connect = Callable[..., Client]
MakeAPI = Callable[..., "LoopbackServer"]


@pytest.fixture
def make_api() -> Iterator[MakeAPI]:
    """Makes APIs that stay until the processes of `connect` have ended: these write to the API's folder to the last."""
    from cc_loopback import LoopbackServer

    with ExitStack() as stack:

        def make(respond: Respond | None = None, *, event_delay: float = 0) -> LoopbackServer:
            return stack.enter_context(LoopbackServer(respond, event_delay=event_delay))

        yield make


@pytest.fixture
async def connect(loopback: LoopbackServer, make_api: MakeAPI) -> AsyncIterator[Connect]:
    """Makes clients; their processes end with the test."""
    async with AsyncExitStack() as stack:

        def make(*, api: LoopbackServer = loopback, timeout: float = 40, **options: Any) -> Client:
            options.setdefault("env", api.env())
            client = Client(api, ClaudeCodeTransport(**options), timeout)
            stack.push_async_callback(client.http.aclose)
            return client

        yield make


@pytest.fixture
def client(connect: Connect) -> Client:
    """With one process, so that what a request leaves is what the next one finds."""
    return connect(size=1)


class Served:
    """The server over HTTP, in a thread of its own."""

    def __init__(self, api: LoopbackServer, transport: ClaudeCodeTransport, **options: Any) -> None:
        self.api = api
        self.transport = transport
        self.token: str = options.setdefault("token", "the token")
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
        """A client that knows the token."""
        headers = {"x-api-key": self.token if token is None else token}
        return httpx2.AsyncClient(base_url=self.url, headers=headers, timeout=40, trust_env=False, **options)


Serve = Callable[..., Served]


@pytest.fixture
async def serve(loopback: LoopbackServer, connect: Connect) -> AsyncIterator[Serve]:
    """Makes servers; they stop before their processes end."""
    with ExitStack() as stack:

        def make(
            *, size: int = 1, api: LoopbackServer = loopback, cli_path: Path | None = None, **options: Any
        ) -> Served:
            client = connect(size=size, api=api, cli_path=cli_path)
            return stack.enter_context(Served(client.api, client.transport, **options))

        yield make


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait for what has no event to wait for: the state of another thread or process."""
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
    """Messages without what may differ: places of cache breakpoints, and a text for a list of one text block."""
    if isinstance(value, list):
        return [plain(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    given = cast("dict[str, Any]", value)
    fields = {name: item if name == "input" else plain(item) for name, item in given.items() if name != "cache_control"}
    if "role" in fields and isinstance(text := fields["content"], str):
        fields["content"] = [{"type": "text", "text": text}]
    return fields


@pytest.fixture(name="plain")
def plain_fixture() -> Callable[[Any], Any]:
    return plain


@pytest.fixture(name="eventually")
def eventually_fixture() -> Callable[[Callable[[], bool]], Any]:
    return eventually


@pytest.fixture(name="processes")
def processes_fixture() -> Callable[[], list[psutil.Process]]:
    return processes
