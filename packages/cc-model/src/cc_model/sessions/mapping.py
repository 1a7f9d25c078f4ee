"""pydantic-ai messages as messages of the API, and back. `AnthropicModel` maps both, at an API that asks nobody."""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import httpx2
from anthropic import AsyncAnthropic
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    BinaryContent,
    CompactionPart,
    DocumentUrl,
    FilePart,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    ToolReturnPart,
    UploadedFile,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings
from pydantic_ai.providers.anthropic import AnthropicProvider

from ..histories import relabelled
from .transcripts import HandOverError, new_answer

PROVIDERS = ("anthropic", "claude-code")
"""Names that Claude's answers carry."""
# With the default, much longer limit `AnthropicModel` asks for a stream.
_SETTINGS = AnthropicModelSettings(max_tokens=1000)
# Without parts `AnthropicModel` takes the instructions from the messages.
_PARAMETERS = ModelRequestParameters(instruction_parts=[])
# The blocks in answers that `AnthropicModel` maps.
_ANSWER_BLOCKS = frozenset({
    "advisor_tool_result", "bash_code_execution_tool_result", "code_execution_tool_result", "compaction",
    "mcp_tool_result", "mcp_tool_use", "redacted_thinking", "server_tool_use", "text",
    "text_editor_code_execution_tool_result", "thinking", "tool_search_tool_result", "tool_use",
    "web_fetch_tool_result", "web_search_tool_result",
})  # fmt: skip
_EMPTY_REPLY = new_answer([], "none")


class APIMapper(httpx2.AsyncBaseTransport):
    """Maps messages with `AnthropicModel`, for which it is the API: it takes the request, and returns a known reply."""

    def __init__(self) -> None:
        self._body: dict[str, Any] = {}
        self._reply: Mapping[str, Any] = _EMPTY_REPLY
        client = AsyncAnthropic(
            api_key="not used", http_client=httpx2.AsyncClient(transport=self), open_telemetry=False
        )
        self._model = AnthropicModel("claude-sonnet-5", provider=AnthropicProvider(anthropic_client=client))

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Keep the body, and answer."""
        self._body = json.loads(await request.aread())
        return httpx2.Response(200, json=self._reply)

    async def request_body(self, messages: Sequence[ModelMessage]) -> dict[str, Any]:
        """Return `messages` as the API would get them, and `system` with the last instructions as a text."""
        history = [_own_message(message, index) for index, message in enumerate(messages)]
        # A request must not end in an answer.
        last_request = ModelRequest(parts=[UserPromptPart("Continue.")])
        ends_in_answer = bool(history) and isinstance(history[-1], ModelResponse)
        self._reply = _EMPTY_REPLY
        try:
            await self._send([*history, *([last_request] if ends_in_answer else [])])
        except UnicodeEncodeError as error:
            raise HandOverError(f"a text has half of a character, which no request can have: {error}") from error
        except (NotImplementedError, UserError) as error:
            raise HandOverError(f"{await self._place(history)}: {error}") from error
        sent: list[Any] = self._body["messages"]
        requests = (message for message in reversed(history) if isinstance(message, ModelRequest))
        instructions = next((request.instructions for request in requests if request.instructions), None)
        system = [_text(self._body.get("system", "")), instructions or ""]
        return {"system": "\n\n".join(filter(None, system)), "messages": sent[:-1] if ends_in_answer else sent}

    async def _send(self, messages: list[ModelMessage]) -> ModelResponse:
        # An agent prepares its messages, too.
        prepared = self._model.prepare_messages(messages, _PARAMETERS)
        return await self._model.request(prepared, _SETTINGS, _PARAMETERS)

    async def _place(self, messages: Sequence[ModelMessage]) -> str:
        """Return the place of the first message that is an error by itself."""
        for index, message in enumerate(messages):
            try:
                await self._send([message])
            except (NotImplementedError, UserError):
                return f"messages.{index}"
        return "messages"

    async def response(self, message: Mapping[str, Any]) -> ModelResponse:
        """Return the model response for an assistant message."""
        content: Sequence[Mapping[str, Any]] = message["content"]
        for index, block in enumerate(content):
            if block["type"] not in _ANSWER_BLOCKS:
                place = f"message {message['id']}.content.{index}"
                raise HandOverError(f"{place}: pydantic-ai has no part for the type {block['type']!r}")
        usage = {**_EMPTY_REPLY["usage"], **_filled(message.get("usage") or {})}
        self._reply = {**_EMPTY_REPLY, **_filled(message), "usage": usage}
        response = await self._send([ModelRequest(parts=[UserPromptPart("-")])])
        if len(response.parts) < len(content):
            raise HandOverError(f"message {message['id']}: pydantic-ai leaves out a server tool's call without result")
        return response


def _text(system: str | list[dict[str, str]]) -> str:
    return system if isinstance(system, str) else "\n\n".join(block["text"] for block in system)


def _filled(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def request_parts(content: Sequence[Mapping[str, Any]], names: Mapping[str, str], place: str) -> list[ModelRequestPart]:
    """Return the parts for a user message; `names` has the tools by call id, and `place` is for errors."""
    parts: list[ModelRequestPart] = []
    prompt: list[UserContent] = []
    for index, block in enumerate(content):
        if block.get("type") == "tool_result":
            parts.append(_tool_return(block, names, f"{place}.content.{index}"))
        else:
            prompt.append(_content(block, f"{place}.content.{index}"))
    if prompt:
        parts.append(UserPromptPart(prompt[0] if len(prompt) == 1 and isinstance(prompt[0], str) else prompt))
    return parts


def details_left_out(content: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the kinds of details for which pydantic-ai has no place."""
    for block in content:
        if block["type"] == "document" and any(block.get(name) for name in ("title", "context", "citations")):
            yield "title or setting of a document"
        if block["type"] == "text":
            citations: Sequence[Mapping[str, Any]] = block.get("citations") or ()
            if any(citation["type"] != "web_search_result_location" for citation in citations):
                yield "text with citations of a document"


def _tool_return(block: Mapping[str, Any], names: Mapping[str, str], place: str) -> ToolReturnPart:
    call = block["tool_use_id"]
    if call not in names:
        raise HandOverError(f"{place}: a result for the call {call!r}, which is not in the conversation")
    content: Any = block.get("content") or ""
    if not isinstance(content, str):
        items = [_content(item, f"{place}.content.{index}") for index, item in enumerate(content)]
        content = items[0] if len(items) == 1 else items
    outcome: Literal["success", "failed"] = "failed" if block.get("is_error") else "success"
    return ToolReturnPart(names[call], content, tool_call_id=call, outcome=outcome)


def _content(block: Mapping[str, Any], place: str) -> UserContent:
    source: Mapping[str, Any] = block.get("source") or {}
    match block.get("type"), source.get("type"):
        case "text", None:
            return block["text"]
        case "image" | "document", "base64":
            return BinaryContent(base64.b64decode(source["data"]), media_type=source["media_type"])
        case "image", "url":
            return ImageUrl(source["url"])
        case "document", "url":
            return DocumentUrl(source["url"], media_type="application/pdf")
        case "document", "text":
            return BinaryContent(source["data"].encode(), media_type="text/plain")
        case "image" | "document", "file":
            media_type = "image/png" if block["type"] == "image" else "application/pdf"
            return UploadedFile(source["file_id"], provider_name="anthropic", media_type=media_type)
        case "tool_reference", None:
            # The agent tools are described in each request.
            return f"[{block['tool_name']} is available]"
        case kind, _:
            raise HandOverError(f"{place}: pydantic-ai has no content of the type {kind!r}")


def _own_message(message: ModelMessage, index: int) -> ModelMessage:
    """Return a message whose response is Anthropic's, which it is if Claude Code has answered."""
    if isinstance(message, ModelRequest):
        return message
    for number, part in enumerate(message.parts):
        place = f"messages.{index}.parts.{number}"
        if isinstance(part, FilePart):
            raise HandOverError(f"{place}: Claude has no files in its answers")
        is_native = isinstance(part, NativeToolCallPart | NativeToolReturnPart | CompactionPart)
        if is_native and part.provider_name not in PROVIDERS:
            kind = type(part).__name__
            raise HandOverError(f"{place}: only {part.provider_name or 'another provider'} understands this {kind}")
    return relabelled(message, "claude-code", "anthropic")
