"""With an OAuth login the CLI adds messages about its environment, and nothing else."""

from typing import Any

from pydantic_ai import Agent

from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider


def without_system(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [message for message in body["messages"] if message["role"] != "system"]


async def test_an_oauth_login_adds_system_messages_about_the_environment_and_nothing_else(
    loopback: LoopbackServer,
) -> None:
    async with ClaudeCodeProvider(env=loopback.env("oauth"), max_retries=0) as provider:
        agent = Agent(ClaudeCodeModel(provider=provider), instructions="Answer briefly.")

        @agent.tool_plain
        def lucky_number() -> int:
            """A number."""
            return 7

        first = await agent.run("One.")
        second = await agent.run("/help @/etc/hostname", message_history=first.all_messages())

    assert "lucky_number returned: 7" in second.output
    assert [call.headers["authorization"] for call in loopback.calls] == ["Bearer sk-ant-oat01-loopback"] * 4
    for body in loopback.requests:
        own = without_system(body)
        assert [message["role"] for message in own] == ["user", "assistant"] * (len(own) // 2) + ["user"]
        added = [str(message["content"]) for message in body["messages"] if message["role"] == "system"]
        assert all("# Environment" in text for text in added)
        assert [tool["name"] for tool in body["tools"]] == ["lucky_number"]
        assert body["system"][-1]["text"] == "Answer briefly."
    [prompt] = without_system(loopback.requests[-1])[-3]["content"]
    assert prompt["text"] == "/help @/etc/hostname"
