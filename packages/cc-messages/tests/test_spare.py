"""With a subscription a spare process takes the system prompt of the request that needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cc_loopback import LoopbackServer

    from .conftest import Connect


async def test_a_new_system_prompt_waits_for_no_start(connect: Connect, shared_api: LoopbackServer) -> None:
    """MSG-07, MSG-78."""
    client = connect(env=shared_api.env("oauth"), size=3, prewarm=1)
    await client.transport.warm()
    for prompt in ("Be brief.", "Be kind."):
        assert (await client.ask("Hello.", system=prompt)).status == 200
        assert shared_api.requests[-1]["system"][-1]["text"] == prompt
        await client.settled()
    assert (client.transport.stats().waits, client.starts) == (0, 3)
