"""Fixtures for tests that only run agents: shared processes on the worker's loopback API."""

import time
from collections.abc import Iterator

import pytest

from cc_loopback import LoopbackServer
from cc_messages import ClaudeCodeTransport
from cc_model import ClaudeCodeModel, ClaudeCodeProvider


@pytest.fixture(scope="session")
def shared_provider(worker_transport: ClaudeCodeTransport) -> ClaudeCodeProvider:
    return ClaudeCodeProvider.over(worker_transport, max_retries=0)


@pytest.fixture
def provider(shared_provider: ClaudeCodeProvider, shared_api: LoopbackServer) -> Iterator[ClaudeCodeProvider]:
    """Yield the shared processes, which other tests use before, and after this test when they are idle."""
    yield shared_provider
    deadline = time.monotonic() + 30
    while not shared_provider.transport.stats().is_at_rest:
        assert time.monotonic() < deadline, f"not at rest: {shared_provider}"
        time.sleep(0.002)


@pytest.fixture
def model(provider: ClaudeCodeProvider) -> ClaudeCodeModel:
    return ClaudeCodeModel(provider=provider)
