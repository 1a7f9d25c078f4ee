"""A client of a transport, with the few calls that the tests need."""

import json
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any

import httpx2

from cc_loopback import LoopbackServer, Reply, Respond
from cc_messages import ClaudeCodeTransport

from .api_data import MESSAGES, MODEL, parse_sse, plain
from .waiting import eventually


@dataclass
class Response:
    """A complete HTTP response: the events in a stream, or a body."""

    status: int
    headers: dict[str, str]
    events: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    body: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def text(self) -> str:
        """All texts, joined."""
        if self.body:
            return "".join(block.get("text", "") for block in self.body["content"])
        return "".join(
            event["delta"].get("text", "") for event in self.events if event["type"] == "content_block_delta"
        )

    @property
    def error(self) -> dict[str, Any]:
        """The error in the body, or in the event that ended the stream."""
        return (self.body or self.events[-1])["error"]

    @property
    def stop_reason(self) -> str | None:
        if self.body:
            return self.body["stop_reason"]
        return next((event["delta"]["stop_reason"] for event in self.events if event["type"] == "message_delta"), None)


class Client:
    """A transport, its loopback API, and an HTTP client for both."""

    def __init__(self, api: LoopbackServer, transport: ClaudeCodeTransport, timeout: float) -> None:
        self.api = api
        self.transport = transport
        self.http = httpx2.AsyncClient(transport=transport, base_url="http://claude", timeout=timeout)
        self._starts_before = 0

    def body(self, *messages: Any, **fields: Any) -> dict[str, Any]:
        """Return a request. A text stands for a message; user and assistant alternate."""
        full: list[Any] = [
            message if isinstance(message, dict) else {"role": ("user", "assistant")[index % 2], "content": message}
            for index, message in enumerate(messages)
        ]
        return {"model": MODEL, "max_tokens": 100, "messages": full, **fields}

    def answers(self, reply: Reply | Respond) -> None:
        """Set the API's next answers: `reply`, or its result for a request body."""

        def respond(body: dict[str, Any]) -> Reply | Awaitable[Reply]:
            return reply(body) if callable(reply) else reply

        self.api.respond = respond

    def script(self, *replies: Any) -> None:
        """Set the API's next answers, in order."""
        remaining = [*replies]
        self.answers(lambda _: remaining.pop(0))

    async def ask(self, *messages: Any, headers: dict[str, str] | None = None, **fields: Any) -> Response:
        """Send a request and read the whole response."""
        body = self.body(*messages, **fields)
        async with self.http.stream("POST", MESSAGES, json=body, headers=headers) as http_response:
            data = await http_response.aread()
        response = Response(http_response.status_code, dict(http_response.headers))
        if http_response.headers["content-type"].startswith("text/event-stream"):
            response.events = parse_sse(data)
        else:
            response.body = json.loads(data)
        return response

    def stream(self, *messages: Any, **fields: Any) -> Any:
        """Open a streamed response."""
        return self.http.stream("POST", MESSAGES, json=self.body(*messages, stream=True, **fields))

    async def settled(self) -> None:
        """Wait until no process is in use."""
        await eventually(lambda: self.transport.stats().is_at_rest)

    async def answers_exactly(self, *messages: Any) -> None:
        """Check that the API receives the next request once, unmixed with earlier ones, and that it is answered."""
        self.answers("Fine.")
        await self.settled()
        self.api.requests.clear()
        reply = await self.ask(*messages)
        assert (reply.status, reply.text) == (200, "Fine.")
        assert self.arrivals(*messages) == 1

    def arrivals(self, *messages: Any) -> int:
        """Return how many requests with exactly these messages the API received.

        A request that the CLI makes by itself and cancels can still arrive much later.
        """
        expected = plain(self.body(*messages)["messages"])
        return sum(plain(body["messages"]) == expected for body in self.api.requests)

    async def begin(self, *, is_warm: bool) -> None:
        """Reset the state that other tests left. If `is_warm`, warm a process with an earlier conversation."""
        await self.settled()
        if is_warm:
            self.answers("x")
            await self.ask("Between two tests.")
            await self.settled()
        self.api.reset()
        self._starts_before = self.transport.stats().starts

    @property
    def starts(self) -> int:
        """Processes started by this test; 0 if shared processes answered everything."""
        return self.transport.stats().starts - self._starts_before

    @property
    def received(self) -> list[dict[str, Any]]:
        """The messages in the last request that the API received."""
        return plain(self.api.requests[-1]["messages"])
