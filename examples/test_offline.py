from typing import Any

from pydantic_ai import Agent

from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider


def greet(body: dict[str, Any]) -> str:
    return f"Hello, {body['messages'][-1]['content'][0]['text']}!"


def test_the_agent_greets_by_name(loopback: LoopbackServer) -> None:
    loopback.respond = greet
    model = ClaudeCodeModel(provider=ClaudeCodeProvider(env=loopback.env()))
    result = Agent(model).run_sync("Ada")
    assert result.output == "Hello, Ada!"
    assert len(loopback.requests) == 1
