"""Processes that are started before the first request."""

import pytest

from cc_loopback import LoopbackServer
from cc_messages import ClaudeCodeTransport
from warm_clients.fixtures import Connect


@pytest.mark.worlds
async def test_any_system_prompt_takes_the_process_that_is_ready(connect: Connect, shared_api: LoopbackServer) -> None:
    """MSG-07, SES-94"""
    client = connect(env=shared_api.env("oauth"), size=1, prewarm=1)
    await client.transport.warm()
    for prompt in ("Be brief.", "Be kind."):
        assert (await client.ask("Hello.", system=prompt)).status == 200
        assert shared_api.requests[-1]["system"][-1]["text"] == prompt
    assert client.starts == 1


async def test_the_first_request_takes_the_process_that_start_has_begun(connect: Connect) -> None:
    """MSG-84"""
    client = connect(size=1, prewarm=1)
    client.transport.start()
    assert (await client.ask("Hello.")).status == 200
    assert client.starts == 1


def test_a_start_of_no_processes_is_refused() -> None:
    """MSG-84"""
    with pytest.raises(ValueError, match="prewarm is 0"):
        ClaudeCodeTransport().start()
