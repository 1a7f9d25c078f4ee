"""Processes that are started before the first request."""

from typing import Any

import pytest

from cc_loopback import LoopbackServer
from cc_messages import ClaudeCodeTransport
from cc_session import PoolLimits
from warm_clients.fixtures import Connect
from warm_clients.waiting import eventually


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


def test_limits_outside_of_pool_limits_are_refused() -> None:
    """SES-66"""
    options: dict[str, Any] = {"prewarm": 1}
    with pytest.raises(
        TypeError, match=r"ClaudeCodeTransport\(\) got .* 'prewarm': use pool=PoolLimits\(prewarm=...\)"
    ):
        ClaudeCodeTransport(**options)


def test_a_start_of_no_processes_is_refused() -> None:
    """MSG-84"""
    with pytest.raises(ValueError, match="prewarm is 0"):
        ClaudeCodeTransport().start()


@pytest.mark.worlds
async def test_async_with_starts_the_processes() -> None:
    """MSG-84"""
    with LoopbackServer() as api:
        async with ClaudeCodeTransport(env=api.env(), pool=PoolLimits(size=2, prewarm=2)) as transport:
            await eventually(lambda: transport.stats().idle == 2)
        async with ClaudeCodeTransport(env=api.env()) as transport:
            assert transport.stats().starting == 0
