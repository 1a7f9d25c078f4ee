"""A transport on the worker's loopback API, for models that share its processes."""

from collections.abc import Iterator

import pytest

from cc_loopback import LoopbackServer
from cc_messages import ClaudeCodeTransport


@pytest.fixture(scope="session")
def worker_transport(worker_api: LoopbackServer) -> Iterator[ClaudeCodeTransport]:
    transport = ClaudeCodeTransport(env=worker_api.env(), pool=2)
    yield transport
    transport.close()


@pytest.fixture
def transport(worker_transport: ClaudeCodeTransport, shared_api: LoopbackServer) -> ClaudeCodeTransport:
    """Return the shared processes, on an API as if it had just started."""
    return worker_transport
