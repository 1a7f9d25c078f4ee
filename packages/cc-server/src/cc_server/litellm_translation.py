"""LiteLLM translations between the OpenAI protocols and the Messages API.

The documented calls (`acompletion`, `aresponses`) add a client, logs, prices and repeats, which take five times as long
as the translation itself. So this module calls the functions below them, which are not documented: the tests of both
protocols notice a change, and the documented calls with an HTTP client of ours can replace them.
"""

import os
from collections.abc import AsyncIterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, cast
from uuid import uuid4

import httpx2
from pydantic_core import from_json

from cc_types import APIError

# Fields that LiteLLM gets. It has hundreds more, with which a client could choose addresses and programs.
_CHAT_FIELDS = frozenset((
    "max_completion_tokens", "max_tokens", "messages", "parallel_tool_calls", "reasoning_effort", "response_format",
    "stop", "stream", "temperature", "tool_choice", "tools", "top_p", "user",
))  # fmt: skip
_RESPONSES_FIELDS = frozenset((
    "include", "input", "instructions", "max_output_tokens", "parallel_tool_calls", "reasoning", "stream",
    "temperature", "text", "tool_choice", "tools", "top_p", "user",
))  # fmt: skip

# Requests by LiteLLM itself: GitHub's lists of prices and headers, which are also in its package, and pictures. And the
# file `.env` of the working folder, which could bring a login.
_OFFLINE = {"LITELLM_OFFLINE_MODE": "true", "MAX_IMAGE_URL_DOWNLOAD_SIZE_MB": "0", "LITELLM_MODE": "PRODUCTION"}

# LiteLLM's errors quote the conversation.
_REASON_CHARACTERS = 500


class StreamError(Exception):
    """An error that ends a stream.

    Attributes:
        error: The API's `error`.
    """

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(error.get("message"))
        self.error = error


class Translation:
    """A request in one of the OpenAI protocols, as a request of the Messages API.

    Attributes:
        request: The body for the Messages API.
        beta: The value of `anthropic-beta` that the body needs, or "".
    """

    def __init__(self, body: Mapping[str, Any], *, is_chat: bool) -> None:
        """Translate the request with this checked body.

        Raises:
            APIError: LiteLLM refuses the request.
        """
        self._is_chat = is_chat
        self._model, names = str(body["model"]), _CHAT_FIELDS if is_chat else _RESPONSES_FIELDS
        self._fields: dict[str, Any] = {name: body[name] for name in names if body.get(name) is not None}
        headers: dict[str, str] = {}
        self._parameters: dict[str, Any] = {}
        library = load()
        try:
            options = cast("dict[str, object]", body.get("stream_options") or {})
            self._shows_usage = options.get("include_usage") is True
            chat = self._fields if is_chat else library.chat_fields(self._model, self._fields)
            self.request: dict[str, Any] = library.request(self._model, chat, headers, self._parameters)
        except Exception as error:  # of any type, by what the client sent
            reason = str(getattr(error, "message", None) or repr(error))[:_REASON_CHARACTERS]
            raise APIError(status=400, message=f"LiteLLM cannot translate this request: {reason}") from error
        if chat.get("reasoning_effort", "none") != "none" and not {"thinking", "output_config"} & self.request.keys():
            message = f"LiteLLM knows no effort for {self._model!r}: name the model by its id, not by an alias"
            raise APIError(status=400, message=message)
        self.beta: str = headers.get("anthropic-beta", "")

    def response(self, content: bytes) -> Any:
        """Return the answer (a model of pydantic) for a whole answer in the Messages API."""
        library = load()
        answer = library.answer(from_json(content), self._parameters)
        return answer if self._is_chat else library.response(self._fields, answer)

    def events(self, events: AsyncIterator[dict[str, Any]]) -> AsyncIterator[Any]:
        """Yield the events (models of pydantic) for those that the Messages API streams.

        Raises:
            StreamError: The stream ends with an error.
        """
        chunks = self._chunks(events)
        return chunks if self._is_chat else load().response_events(self._model, self._fields, chunks)

    async def _chunks(self, events: AsyncIterator[dict[str, Any]]) -> AsyncIterator[Any]:
        """Yield chunks of a chat completion: the first has the role, the last the usage."""
        parser = load().parser(self._parameters)
        usage: Any = None
        chunk: Any = None
        role: str | None = "assistant"
        async for event in events:
            if event["type"] == "error":
                raise StreamError(event["error"])
            chunk = parser.chunk_parser(event)
            usage = getattr(chunk, "usage", None) or usage
            chunk.usage = None
            [choice] = chunk.choices
            if not role and _is_empty(choice.delta):
                if choice.finish_reason is None:
                    continue
                choice.delta.content = None
            choice.delta.role, role = role, None
            yield chunk
        if chunk is not None and (self._shows_usage or not self._is_chat):
            yield chunk.model_copy(update={"choices": [], "usage": usage})


def _is_empty(delta: Any) -> bool:
    return not any(delta.model_dump(exclude_none=True).values())


class _Chunks:
    """Chunks in the form that LiteLLM streams."""

    logging_obj = None

    def __init__(self, chunks: AsyncIterator[Any]) -> None:
        self._chunks = chunks

    async def __anext__(self) -> Any:
        return await anext(self._chunks)


class _Library:
    """LiteLLM functions."""

    def __init__(self) -> None:
        os.environ.update(_OFFLINE)
        names = (
            "litellm", "litellm.utils", "litellm.llms.anthropic.chat.handler",
            "litellm.llms.anthropic.chat.transformation",
            "litellm.responses.litellm_completion_transformation.transformation",
            "litellm.responses.litellm_completion_transformation.streaming_iterator",
        )  # fmt: skip
        self._main, self._utils, self._handler, self._messages, self._responses, self._events = (
            import_module(name) for name in names
        )
        main: Any = self._main
        main.suppress_debug_info = True
        self._config: Any = main.AnthropicConfig()
        self._names: str = self._messages.ANTHROPIC_TOOL_NAME_REVERSE_MAP_KEY

    def chat_fields(self, model: str, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a chat completion for those of a response."""
        convert = self._responses.LiteLLMCompletionResponsesConfig
        chat = convert.transform_responses_api_request_to_chat_completion_request(
            model=model, input=fields["input"], responses_api_request=fields, custom_llm_provider="anthropic",
            stream=fields.get("stream"), drop_params=True,
        )  # fmt: skip
        return {name: value for name, value in chat.items() if name in _CHAT_FIELDS and value is not None}

    def request(
        self, model: str, fields: dict[str, Any], headers: dict[str, str], parameters: dict[str, Any]
    ) -> dict[str, Any]:
        """Return a body for the Messages API; put its headers and what its answer needs into the other arguments."""
        messages = self._utils.validate_and_fix_openai_messages(fields["messages"])
        messages = self._config.translate_developer_role_to_system_role(
            messages=messages, model=model, custom_llm_provider="anthropic", api_base=None, model_info=None
        )
        options = self._utils.get_optional_params(
            **{name: value for name, value in fields.items() if name != "messages"}, model=model, messages=messages,
            custom_llm_provider="anthropic", drop_params=True,
        )  # fmt: skip
        is_json = options.pop("json_mode", False)
        names: dict[str, Any] = {}
        body = self._config.transform_request(
            model=model, messages=messages, optional_params=options, litellm_params=names, headers=headers
        )
        schema = self._messages.JsonModeRequest.model_validate(options).tool_schema() if is_json else None
        parameters.update(
            json_mode=is_json, response_format_schema=schema, tool_name_reverse_map=names.get(self._names)
        )
        return body

    def answer(self, message: dict[str, Any], parameters: dict[str, Any]) -> Any:
        """Return a chat completion for a message."""
        return self._config.transform_parsed_response(
            message, httpx2.Response(200), self._main.ModelResponse(), **parameters
        )

    def parser(self, parameters: dict[str, Any]) -> Any:
        """Return an object whose `chunk_parser` translates events."""
        return self._handler.ModelResponseIterator(None, sync_stream=False, **parameters)

    def response(self, fields: dict[str, Any], answer: Any) -> Any:
        """Return a response for a chat completion."""
        answer.id = f"resp_{uuid4().hex}"
        convert = self._responses.LiteLLMCompletionResponsesConfig
        return convert.transform_chat_completion_response_to_responses_api_response(
            request_input=fields["input"], responses_api_request=fields, chat_completion_response=answer
        )

    def response_events(self, model: str, fields: dict[str, Any], chunks: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Yield a response's events for the chunks of a chat completion."""
        return self._events.LiteLLMCompletionStreamingIterator(
            model=model, litellm_custom_stream_wrapper=_Chunks(chunks), request_input=fields["input"],
            responses_api_request=fields, custom_llm_provider="anthropic",
        )  # fmt: skip


@cache
def load() -> _Library:
    """Import LiteLLM. The first call takes seconds."""
    return _Library()
