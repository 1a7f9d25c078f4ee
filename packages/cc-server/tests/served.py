"""The HTTP server, in a thread."""

import threading
import time
from typing import Any, Self

import httpx2
import uvicorn

from cc_loopback import LoopbackServer
from cc_messages import ClaudeCodeTransport
from cc_server import create_app
from warm_clients.api_data import BODY, MESSAGES


class Served:
    """The server over a transport, running inside the `with` block."""

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
        """Return a client that sends the token."""
        headers = {"x-api-key": self.token if token is None else token}
        # Unverified, since each client would load all certificates.
        return httpx2.AsyncClient(
            base_url=self.url, headers=headers, timeout=40, trust_env=False, verify=False, **options
        )

    async def post(
        self, body: dict[str, Any] = BODY, path: str = MESSAGES, *, token: str | None = None, **fields: Any
    ) -> httpx2.Response:
        """Send a request with a new client."""
        async with self.http(token=token) as http:
            return await http.post(path, json={**body, **fields})
