"""Fixtures of these tests: `warm_clients.fixtures`, and servers: `served`, and `serve` with other options."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from cc_loopback import LoopbackServer
    from cc_messages import ClaudeCodeTransport
    from warm_clients.client import Client
    from warm_clients.shared import Shared

    from .served import Served

with suppress(ImportError):  # the README's examples are tried without the workspace
    from warm_clients.fixtures import *  # noqa: F403

Serve = Callable[..., "Served"]


@pytest.fixture(scope="session")
def worker_server(
    shared: "Shared", worker_api: "LoopbackServer", single_transport: "ClaudeCodeTransport"
) -> Iterator["Served"]:
    """Yield the server over the transport of `client`, for all tests in a worker."""
    from .served import Served

    with Served(worker_api, single_transport) as server:
        yield server


@pytest.fixture
def served(client: "Client", worker_server: "Served") -> "Served":
    """Return the worker's server, over `client`'s transport."""
    return worker_server


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Make servers with options, over a client's transport."""
    from .served import Served

    with ExitStack() as stack:

        def make(client: "Client", **options: Any) -> "Served":
            return stack.enter_context(Served(client.api, client.transport, **options))

        yield make


@pytest.fixture
def clients_file(tmp_path: Path) -> Callable[[str], Path]:
    """Write the file with a server's clients."""
    path = tmp_path / "clients.toml"
    path.touch(0o600)

    def write(text: str) -> Path:
        path.write_text(text, encoding="utf-8")
        return path

    return write
