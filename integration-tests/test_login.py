"""With each login the API gets the caller's content; with a subscription two CLI system blocks precede it."""

from typing import Any

import pytest
from pydantic_ai import Agent

from cc_loopback import Login, LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider

pytestmark = pytest.mark.worlds

BEARER = {"CLAUDE_CODE_OAUTH_TOKEN": "", "ANTHROPIC_AUTH_TOKEN": "sk-ant-oat01-loopback"}


@pytest.mark.parametrize(
    ("login", "variables"),
    [("api-key", {}), ("oauth", {}), ("oauth", BEARER), ("vertex", {}), ("bedrock", {})],
    ids=["api-key", "oauth", "oauth as a bearer token", "vertex", "bedrock"],
)
async def test_a_run_with_tools_and_live_text_is_the_callers_alone(
    login: Login, variables: dict[str, str], loopback: LoopbackServer
) -> None:
    """ARCH-26, MSG-07: no message about folder, system or date with any login."""
    env = {**loopback.env(login), **variables}
    async with ClaudeCodeProvider(env=env, pool=1, max_retries=0) as provider:
        agent = Agent(ClaudeCodeModel(provider=provider), instructions="Answer briefly.")

        @agent.tool_plain
        def lucky_number() -> int:
            """A number."""
            return 7

        first = await agent.run("One.")
        second = await agent.run("/help @/etc/hostname", message_history=first.all_messages())
        assert provider.transport.stats().starts == 1

    assert "lucky_number returned: 7" in second.output
    added: list[Any] = []
    for body in loopback.requests:
        assert [message["role"] for message in body["messages"]][::2] == ["user"] * ((len(body["messages"]) + 1) // 2)
        assert [tool["name"] for tool in body["tools"]] == ["lucky_number"]
        *added, prompt = body["system"]
        assert prompt["text"] == "Answer briefly."
    assert len(added) == (2 if login == "oauth" else 0)
    [block] = loopback.requests[-1]["messages"][-3]["content"]
    assert block == {"type": "text", "text": "/help @/etc/hostname"}
    if login == "oauth":
        assert {call.headers["authorization"] for call in loopback.calls} == {"Bearer sk-ant-oat01-loopback"}
