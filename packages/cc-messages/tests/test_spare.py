"""Spare processes: one starts before the first request; with a subscription one takes a system prompt."""

import pytest

from cc_loopback import LoopbackServer
from cc_messages import ClaudeCodeTransport

from .conftest import Connect


async def test_a_new_system_prompt_waits_for_no_start(
    connect: Connect, shared_api: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MSG-07, MSG-78."""
    # A busy machine may take long to empty a process.
    monkeypatch.setattr("cc_session.pool.processes._RESET_SOON_SECONDS", 30.0)
    client = connect(env=shared_api.env("oauth"), size=3, prewarm=1)
    await client.transport.warm()
    for prompt in ("Be brief.", "Be kind."):
        assert (await client.ask("Hello.", system=prompt)).status == 200
        assert shared_api.requests[-1]["system"][-1]["text"] == prompt
        await client.settled()
    assert (client.transport.stats().waits, client.starts) == (0, 3)
    for _ in range(3):  # the process that is still being emptied is nearer than a spare one
        assert (await client.ask("Hello.", system="Be kind.")).status == 200
    await client.settled()
    assert client.starts == 3


async def test_the_first_request_takes_the_process_that_start_has_begun(connect: Connect) -> None:
    """MSG-84."""
    client = connect(size=1, prewarm=1)
    client.transport.start()
    assert (await client.ask("Hello.")).status == 200
    assert client.starts == 1


def test_a_start_of_no_processes_is_refused() -> None:
    """MSG-84."""
    with pytest.raises(ValueError, match="prewarm is 0"):
        ClaudeCodeTransport().start()
