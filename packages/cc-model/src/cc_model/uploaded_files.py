"""Files that were uploaded to Anthropic: Claude Code uses the same API, so they are valid here too.

pydantic-ai labels files with the provider that took them, and `AnthropicModel` sends only those with the same name.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any, cast

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ToolReturnPart,
    UploadedFile,
    UserPromptPart,
)

__all__ = ["with_own_files"]

_ANTHROPIC = "anthropic"


def with_own_files(messages: Sequence[ModelMessage], system: str) -> list[ModelMessage]:
    """Return the messages with Anthropic's files relabelled for the model with this `system`; all else is unchanged."""
    return [
        replace(message, parts=[_part(part, system) for part in message.parts])
        if isinstance(message, ModelRequest) and any(map(_has_files, message.parts))
        else message
        for message in messages
    ]


def _has_files(part: ModelRequestPart) -> bool:
    match part:
        case UserPromptPart(content=content) | ToolReturnPart(content=content):
            items = cast("Sequence[object]", content) if isinstance(content, list | tuple) else [content]
            return any(isinstance(item, UploadedFile) for item in items)
        case _:
            return False


def _part(part: ModelRequestPart, system: str) -> ModelRequestPart:
    match part:
        case UserPromptPart(content=content) | ToolReturnPart(content=content):
            return replace(part, content=_own(content, system))
        case _:
            return part


def _own(content: Any, system: str) -> Any:
    if isinstance(content, list | tuple):
        return [_own(item, system) for item in cast("Sequence[object]", content)]
    if isinstance(content, UploadedFile) and content.provider_name == _ANTHROPIC:
        content = copy(content)
        content.provider_name = system
    return content
