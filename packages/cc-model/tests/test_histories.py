"""Histories of `AnthropicModel`, which any allowed pydantic-ai has to send with their thinking."""

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ThinkingPart, UserPromptPart

from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider


async def test_thinking_of_the_direct_api_stays_thinking(shared_api: LoopbackServer, model: ClaudeCodeModel) -> None:
    """MODEL-183."""
    history: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart("Hello?")]),
        ModelResponse(
            parts=[ThinkingPart("Hm.", signature="c2ln", provider_name="anthropic"), TextPart("Yes?")],
            provider_name="anthropic",
        ),
    ]
    await Agent(model).run("And now?", message_history=history)
    assert shared_api.requests[-1]["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "text", "text": "Yes?"},
    ]
    assert {message.provider_name for message in history if isinstance(message, ModelResponse)} == {"anthropic"}


def test_state_is_shared_with_the_address_of_the_processes(
    shared_api: LoopbackServer, provider: ClaudeCodeProvider
) -> None:
    """MODEL-183: such as a container for code."""
    assert provider.shares_server_state_with(f"{shared_api.url}/v1")
    assert provider.shares_server_state_with("https://api.anthropic.com/")
    assert not provider.shares_server_state_with("https://api.anthropic.com.example")
