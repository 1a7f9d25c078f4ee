"""A transport on the worker's loopback API, for models that share its processes."""

import pytest

from cc_loopback import LoopbackServer
from cc_messages import ClaudeCodeTransport


@pytest.fixture
def transport(worker_transport: ClaudeCodeTransport, shared_api: LoopbackServer) -> ClaudeCodeTransport:
    """Return the shared processes, on an API as if it had just started."""
    return worker_transport
