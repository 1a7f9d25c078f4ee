"""A model on the loopback API, for the demo's agent."""

from collections.abc import AsyncIterator

import pytest

from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider


@pytest.fixture(scope="module")
async def module_model(worker_api: LoopbackServer) -> AsyncIterator[ClaudeCodeModel]:
    async with ClaudeCodeProvider(env=worker_api.env(), pool=1) as provider:
        yield ClaudeCodeModel(provider=provider)


@pytest.fixture
def model(shared_api: LoopbackServer, module_model: ClaudeCodeModel) -> ClaudeCodeModel:
    return module_model
