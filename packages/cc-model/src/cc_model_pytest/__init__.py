"""The pytest fixture `claude_code_model`.

pytest loads this package in every run where cc-model is installed, so only the fixture imports cc-model.
"""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cc_loopback import LoopbackServer
    from cc_model import ClaudeCodeModel


@pytest.fixture
def claude_code_model(request: pytest.FixtureRequest) -> "Iterator[ClaudeCodeModel]":
    """A `ClaudeCodeModel` on the test's `loopback` server, without retries; its process ends with the test.

    Needs cc-loopback, which `cc-model[pytest]` installs.
    """
    try:
        server: LoopbackServer = request.getfixturevalue("loopback")
    except pytest.FixtureLookupError:
        pytest.fail("claude_code_model needs the fixture `loopback`: pip install 'cc-model[pytest]'", pytrace=False)
    from cc_model import ClaudeCodeModel, ClaudeCodeProvider

    provider = ClaudeCodeProvider(env=server.env(), max_retries=0)
    yield ClaudeCodeModel(provider=provider)
    # In another thread: here, `asyncio.run()` would replace the loop that the test's `run_sync()` has left open.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, provider.aclose()).result()
