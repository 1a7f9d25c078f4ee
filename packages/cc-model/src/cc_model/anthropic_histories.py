"""Histories of `AnthropicModel`: their thinking and native tool parts are valid for Claude Code, too.

From 2.63 on, pydantic-ai knows that by itself, from `canonical_system`. Older versions send such parts only if they
have the model's own provider name.
"""

from collections.abc import Sequence
from dataclasses import replace

from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponsePart
from pydantic_ai.models.anthropic import AnthropicModel

__all__ = ["with_own_responses"]

_ANTHROPIC = "anthropic"
_IS_KNOWN_TO_PYDANTIC_AI = hasattr(AnthropicModel, "canonical_system")


def with_own_responses(messages: Sequence[ModelMessage], system: str) -> Sequence[ModelMessage]:
    """Return the messages with Anthropic's responses relabelled for `system`, if this pydantic-ai needs that."""
    return messages if _IS_KNOWN_TO_PYDANTIC_AI else [_message(message, system) for message in messages]


def _message(message: ModelMessage, system: str) -> ModelMessage:
    if not isinstance(message, ModelResponse):
        return message
    name = system if message.provider_name == _ANTHROPIC else message.provider_name
    return replace(message, provider_name=name, parts=[_part(part, system) for part in message.parts])


def _part(part: ModelResponsePart, system: str) -> ModelResponsePart:
    return replace(part, provider_name=system) if part.provider_name == _ANTHROPIC else part
