from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from anthropic import Anthropic

from cc_loopback import LoopbackServer, Respond

Serve = Callable[[Respond | None], LoopbackServer]
Connect = Callable[[LoopbackServer], Anthropic]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def serve(stack: ExitStack) -> Serve:
    """Start a server whose `errors` the test checks itself."""
    return lambda respond: stack.enter_context(LoopbackServer(respond))


@pytest.fixture
def connect(stack: ExitStack) -> Connect:
    """Create the official client of a server, without retries."""
    return lambda server: stack.enter_context(Anthropic(base_url=server.url, api_key="key", max_retries=0))
