"""`ClaudeCodeModel`: Claude Code as a pydantic-ai model.

It is `AnthropicModel` over another transport: parts, tools, output modes, streaming, usage and finish reasons are
mapped there. Here stands only what is different when Claude Code answers.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.profiles import ModelProfileSpec
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from .errors import claude_code_errors
from .provider import ClaudeCodeProvider, default_provider

__all__ = ["ClaudeCodeModel"]


class ClaudeCodeModel(AnthropicModel):
    """A Claude model, answered by the Claude Code CLI with its login.

    The agent owns the loop: its tools run where it runs, and the CLI answers one request at a time. The model sees
    what it would see through the API: no built-in tools, no settings, no files.

    Args:
        model_name: A model id, or one of Claude Code's aliases such as `"sonnet"`.
        provider: The processes; by default all models of this Python process share some.
        settings: Default settings of requests.
        profile: What the model can do, if the default is not right.
    """

    # What `AnthropicModel` could render, but is not passed through yet.
    supported_tool_deferral_modes = frozenset()
    supported_tool_addition_modes = frozenset()

    def __init__(
        self,
        model_name: str = "claude-sonnet-5",
        *,
        provider: ClaudeCodeProvider | None = None,
        settings: ModelSettings | None = None,
        profile: ModelProfileSpec | None = None,
    ) -> None:
        super().__init__(model_name, provider=provider or default_provider(), settings=settings, profile=profile)

    @property
    def batch_max_requests(self) -> int | None:
        """None: Claude Code has no batches."""
        return None

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Make one request.

        Raises:
            UserError: There is no Claude Code CLI.
            ModelHTTPError: The API answered with an error.
            ModelConnectionError: A process failed, or lost the API.
        """
        with claude_code_errors(self.model_name):
            return await super().request(messages, model_settings, model_request_parameters)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Make one request and stream its response. Raises what `request()` raises, also while it is read."""
        with claude_code_errors(self.model_name):
            async with super().request_stream(
                messages, model_settings, model_request_parameters, run_context
            ) as response:
                yield response

    async def count_tokens(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> RequestUsage:
        """Not available yet.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError("Claude Code does not count tokens ahead of a request")
