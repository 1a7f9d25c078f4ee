"""No request goes to a subscription's usage endpoint: polling it has blocked accounts.

The CLI requests it at the API's host, whatever `ANTHROPIC_BASE_URL` says. So the test simulates that host.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import pytest
from claude_agent_sdk import ClaudeAgentOptions

from api_script import steps
from cc_loopback import LoopbackServer
from cc_messages import ClaudeCodeTools, ClaudeCodeTransport, request_context
from cc_session import Session
from played_host import played_host

pytestmark = pytest.mark.slow

# Seconds. The CLI's requests after an answer follow at once.
_MOMENT = 1.0


@asynccontextmanager
async def _subscription(loopback: LoopbackServer, folder: Path) -> AsyncGenerator[dict[str, str]]:
    """Yield a CLI's environment with an artificial subscription, and the simulated host as the API."""
    async with played_host(loopback, folder) as env:
        yield {**loopback.env("oauth"), "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "", **env}


def _check(loopback: LoopbackServer, messages: int) -> None:
    """Check that the simulated host answered the requests, and that no request asked for the account's usage."""
    paths = [call.path for call in loopback.calls]
    assert paths.count("/v1/messages") == messages, paths
    assert not [path for path in paths if "usage" in path], paths


async def test_starting_running_and_resuming_a_session_asks_for_no_usage(
    loopback: LoopbackServer, tmp_path: Path
) -> None:
    """SEC-11"""
    async with _subscription(loopback, tmp_path) as env:
        options = ClaudeAgentOptions(env=env, tools=[])
        async with await Session.open(options) as session:
            turn = await session.run("Hello.")
            await asyncio.sleep(_MOMENT)
        options.resume = turn.session_id
        async with await Session.open(options) as session:
            await session.run("And you?")
            await asyncio.sleep(_MOMENT)
        _check(loopback, messages=2)
        # Proof that the CLI used the simulated host as its API.
        assert any(path.startswith("/api/") for path in {call.path for call in loopback.calls})


async def test_answering_requests_asks_for_no_usage(loopback: LoopbackServer, tmp_path: Path) -> None:
    """SEC-11: in the caller's loop and in the CLI's, also when the plan is used up."""
    loopback.respond = steps("Fine.")
    body = {"model": "claude-sonnet-5", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello."}]}
    used_up = {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": str(int(datetime.now(UTC).timestamp()) + 7200),
        "anthropic-ratelimit-unified-representative-claim": "five_hour",
    }
    async with _subscription(loopback, tmp_path) as env:
        transport = ClaudeCodeTransport(env=env, pool=2)
        async with httpx2.AsyncClient(transport=transport, base_url="http://claude", timeout=40) as http:
            for own in (None, ClaudeCodeTools(tools=("Read",))):
                with request_context(claude_code_tools=own):
                    assert (await http.post("/v1/messages", json=body)).status_code == 200
                    loopback.fail_next(429, headers=used_up)
                    assert (await http.post("/v1/messages", json=body)).status_code == 429
            await asyncio.sleep(_MOMENT)
        _check(loopback, messages=4)
        assert transport.limits is not None
