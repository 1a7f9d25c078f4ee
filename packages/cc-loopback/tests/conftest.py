from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from anthropic import Anthropic
from anthropic.types import Message, MessageParam

from cc_loopback import LoopbackServer, Respond

Serve = Callable[[Respond | None], LoopbackServer]
Connect = Callable[[LoopbackServer], Anthropic]

PROMPT: list[MessageParam] = [{"role": "user", "content": "Hello"}]
BODY: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": PROMPT}


def ask(client: Anthropic) -> Message:
    return client.messages.create(model="m", max_tokens=9, messages=PROMPT)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def serve(stack: ExitStack) -> Serve:
    """Start a server whose `errors` the test checks itself."""
    return lambda respond: stack.enter_context(LoopbackServer(respond))


@pytest.fixture
def fine(serve: Serve) -> LoopbackServer:
    return serve(lambda body: "fine")


@pytest.fixture
def connect(stack: ExitStack) -> Connect:
    """Create the official client for a server, without retries."""
    return lambda server: stack.enter_context(Anthropic(base_url=server.url, api_key="key", max_retries=0))
