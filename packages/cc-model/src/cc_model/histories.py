"""Histories and files of `AnthropicModel`: Claude Code uses the same API, so they are valid here, too.

pydantic-ai labels them with the provider that made or took them, and `AnthropicModel` sends only those with the same
name.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any, TypeGuard, cast

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequestPart,
    ModelResponse,
    ToolReturnPart,
    UploadedFile,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.native_tools import AbstractNativeTool, CodeExecutionTool

_ANTHROPIC = "anthropic"


def with_own_files(parameters: ModelRequestParameters, system: str) -> ModelRequestParameters:
    """Return the parameters with Anthropic files for code execution relabelled for `system`."""
    return replace(parameters, native_tools=[_native_tool(tool, system) for tool in parameters.native_tools])


def _native_tool(tool: AbstractNativeTool, system: str) -> AbstractNativeTool:
    if isinstance(tool, CodeExecutionTool) and tool.files:
        return replace(tool, files=_with_our_files(tool.files, system))
    return tool


def with_own_parts(messages: Sequence[ModelMessage], system: str) -> list[ModelMessage]:
    """Return the messages with Anthropic answers and files relabelled for `system`; all else is unchanged."""
    return [_message(message, system) for message in messages]


def _message(message: ModelMessage, system: str) -> ModelMessage:
    if isinstance(message, ModelResponse):
        return relabelled(message, _ANTHROPIC, system)
    if not any(map(_has_files, message.parts)):
        return message
    parts = [
        replace(part, content=_with_our_files(part.content, system)) if _has_files(part) else part
        for part in message.parts
    ]
    return replace(message, parts=parts)


def relabelled(answer: ModelResponse, provider: str, system: str) -> ModelResponse:
    """Return an answer with `system` in the place of `provider`, also in its parts."""
    if provider not in (answer.provider_name, *(part.provider_name for part in answer.parts)):
        return answer
    parts = [replace(part, provider_name=system) if part.provider_name == provider else part for part in answer.parts]
    name = system if answer.provider_name == provider else answer.provider_name
    return replace(answer, provider_name=name, parts=parts)


def _has_files(part: ModelRequestPart) -> TypeGuard[UserPromptPart | ToolReturnPart]:
    match part:
        case UserPromptPart(content=content) | ToolReturnPart(content=content):
            items = cast("Sequence[object]", content) if isinstance(content, list | tuple) else [content]
            return any(isinstance(item, UploadedFile) for item in items)
        case _:
            return False


def _with_our_files(content: Any, system: str) -> Any:
    if isinstance(content, list | tuple):
        return [_with_our_files(item, system) for item in cast("Sequence[object]", content)]
    if isinstance(content, UploadedFile) and content.provider_name == _ANTHROPIC:
        content = copy(content)
        content.provider_name = system
    return content
