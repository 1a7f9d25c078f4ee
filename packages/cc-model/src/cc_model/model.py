"""Claude Code as a pydantic-ai model: `ClaudeCodeModel`.

It is `AnthropicModel` over another transport. `AnthropicModel` maps parts, tools, output modes, streaming, usage and
finish reasons; this module has only the differences of Claude Code.
"""

import asyncio
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import timedelta
from typing import Any, cast

from claude_agent_sdk import Message
from claude_agent_sdk.types import McpServerConfig
from pydantic_ai import RunContext
from pydantic_ai.exceptions import ModelConnectionError
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.profiles import ModelProfileSpec
from pydantic_ai.settings import ModelSettings, merge_model_settings
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.usage import RequestUsage

from cc_ipc import TransportType
from cc_messages import ClaudeCodeTools, CLITools, RequestContext, request_context
from cc_types import CLIConnectionError, CLIResponse

from .agent_tools import AgentTools
from .errors import ToolsetNotRegisteredError, claude_code_errors
from .mcp_server_tools import with_mcp_servers, without_mcp_servers
from .provider import ClaudeCodeProvider, default_provider
from .reports import add_to_stream, set_span_attributes, with_details
from .settings import ClaudeCodeModelSettings
from .transcript import MessageCallback, Transcript, metadata
from .uploaded_files import with_own_files

__all__ = ["PREFIX", "ClaudeCodeModel"]

PREFIX = "claude-code:"
"""Provider's part of a pydantic-ai model id."""

# Lifetime of a breakpoint without a TTL.
_CLAUDE_CODE_RETENTION = timedelta(minutes=5)


class ClaudeCodeModel(AnthropicModel):
    """Claude model, answered by the Claude Code CLI with its login.

    The agent owns the loop: its tools run in the agent, and the CLI answers one request at a time. The model gets the
    same input as through the API: no built-in tools, no settings, no files. With `set_agent_toolsets()` the CLI runs
    the loop instead.

    Args:
        model_name: A model id, or one of Claude Code's aliases such as `"sonnet"`; with or without `claude-code:`
            before it.
        provider: Process pool; by default all models of this Python process share one.
        settings: Default settings of requests.
        profile: Capabilities of the model, if the default is wrong.
        message_callback: Called in the event loop of a request with each of its CLI messages, as SDK types, up to the
            `ResultMessage`, which the request then waits for: some milliseconds. If a stream is left early, its
            `ResultMessage` comes afterwards. If none comes after a complete answer, a warning is logged. It may be a
            coroutine function. Its exceptions are logged.
    """

    def __init__(
        self,
        model_name: str = "claude-sonnet-5",
        *,
        provider: ClaudeCodeProvider | None = None,
        settings: ModelSettings | None = None,
        profile: ModelProfileSpec | None = None,
        message_callback: MessageCallback | None = None,
    ) -> None:
        name = model_name.removeprefix(PREFIX)
        super().__init__(name, provider=provider or default_provider(), settings=settings, profile=profile)
        self._message_callback = message_callback
        self._agent_tools: AgentTools | None = None

    @property
    def batch_max_requests(self) -> int | None:
        """Maximum size of a batch: None, since Claude Code has no batches."""
        return None

    def resolve_cache_retention(self, model_settings: ModelSettings | None) -> timedelta | None:
        """Return the longest lifetime of the cache breakpoints in the settings, or else of the default breakpoints."""
        retention = super().resolve_cache_retention(model_settings)
        if retention is None and cast(ClaudeCodeProvider, self._provider).cache_breakpoints:
            return _CLAUDE_CODE_RETENTION
        return retention

    def set_agent_toolsets(
        self,
        toolsets: AbstractToolset[Any] | Sequence[AbstractToolset[Any]] | None,
        *,
        server_name: str = "pydantic_tools",
        transport: TransportType = "auto",
    ) -> None:
        """Let the CLI run the loop: it calls the tools itself and asks the model again, until there is an answer.

        The agent then sees one request, independent of the steps of the CLI: the response has the calls and their
        results as native tool parts, in order. Tools run in the event loop of the request, with the dependencies of the
        agent's run. Only tools that the request offers as function tools can be called. Approvals and deferred tools
        need the agent's own loop, which is the default.

        Args:
            toolsets: The toolsets, such as `agent.toolsets`; None gives the loop back to the agent.
            server_name: The model sees the tools as `mcp__SERVER_NAME__TOOL`.
            transport: Transport to the CLI: `"stdio"` is a bridge process, `"sdk"` the existing connection, `"auto"`
                the better one of those available (`cc_ipc.resolve_transport()` gives the reason).

        Raises:
            cc_ipc.TransportUnavailableError: The transport is not available here.
            ValueError: `server_name` is not a valid server name.
        """
        if toolsets is None:
            self._agent_tools = None
            return
        given = [toolsets] if isinstance(toolsets, AbstractToolset) else toolsets
        self._agent_tools = AgentTools(self, given, server_name, transport)

    def get_mcp_servers(self) -> dict[str, McpServerConfig]:
        """Return the MCP servers that give the CLI the tools of `set_agent_toolsets()`, by name; empty without it.

        Another SDK client may use an in-process server. Over `"stdio"` each process has its own server, whose socket
        and file exist only while the process runs, so they are left out.
        """
        return {} if self._agent_tools is None else self._agent_tools.mcp_servers()

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Make one request.

        Raises:
            UserError: There is no Claude Code CLI.
            ModelHTTPError: The API answered with an error. `ModelPlanLimitError` if the plan is used up.
            ModelConnectionError: A process failed, or lost its connection to the API.
            cc_ipc.ToolNotFoundError: A function tool is in none of the registered toolsets.
        """
        if self._message_callback is None:
            return await self._request(messages, model_settings, model_request_parameters, None)
        transcript = Transcript(self._message_callback)
        response = await self._request(messages, model_settings, model_request_parameters, transcript)
        await transcript.complete_if_possible()
        return response

    async def request_with_metadata(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> tuple[ModelResponse, CLIResponse]:
        """Make one request; return the response and the CLI's report.

        Raises:
            ModelConnectionError: The CLI sent no report after its answer.
            Exception: An error of `request()`.
        """
        transcript = Transcript(self._message_callback)
        response = await self._request(messages, model_settings, model_request_parameters, transcript)
        return response, metadata(await self._completed(transcript), response.text)

    async def stream_messages(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> AsyncGenerator[Message]:
        """Make one request and yield the SDK's messages as the CLI sends them, the result as the last one.

        Only the CLI runs tools, so function tools must be set with `set_agent_toolsets()` first.

        Raises:
            ToolsetNotRegisteredError: There are function tools and no toolsets.
            ModelConnectionError: The CLI sent no result after its answer.
            Exception: An error of `request()`, after the messages that came before.
        """
        function_tools = model_request_parameters.function_tools
        if function_tools and self._agent_tools is None:
            raise ToolsetNotRegisteredError(tools=[tool.name for tool in function_tools])
        heard: asyncio.Queue[Message | None] = asyncio.Queue()
        transcript = Transcript(self._message_callback, heard)

        async def ask() -> None:
            try:
                await self._request(messages, model_settings, model_request_parameters, transcript)
                await self._completed(transcript)
            finally:
                heard.put_nowait(None)

        asking = asyncio.create_task(ask())
        try:
            while (message := await heard.get()) is not None:
                yield message
            await asking
        finally:
            asking.cancel()
            await asyncio.wait({asking})

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Make one request and yield its stream. Raises the errors of `request()`, also while the stream is read."""
        claude_code_tools = self._claude_code_tools(model_settings, model_request_parameters)
        parameters = without_mcp_servers(model_request_parameters)
        transcript = None if self._message_callback is None else Transcript(self._message_callback)
        with claude_code_errors(self.model_name):
            async with AsyncExitStack() as stack:
                tools = await stack.enter_async_context(self._offered(parameters, run_context))
                # Only while the request is sent: a stream may be closed in another task than it was opened in.
                with _observed_context(tools, claude_code_tools, transcript) as context:
                    response = await stack.enter_async_context(
                        super().request_stream(
                            with_own_files(messages, self.system), model_settings, parameters, run_context
                        )
                    )
                add_to_stream(response, context)
                yield response
            if transcript is not None:
                await transcript.complete_if_possible()

    async def count_tokens(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> RequestUsage:
        """Return the API's count of a request's tokens, without Claude Code's additions. No process is used.

        Raises:
            ModelHTTPError: There is no API key (status 404), or the API refuses.
        """
        return await super().count_tokens(
            with_own_files(messages, self.system), model_settings, without_mcp_servers(model_request_parameters)
        )

    async def _request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        parameters: ModelRequestParameters,
        transcript: Transcript | None,
    ) -> ModelResponse:
        claude_code_tools = self._claude_code_tools(model_settings, parameters)
        parameters = without_mcp_servers(parameters)
        with claude_code_errors(self.model_name):
            async with self._offered(parameters) as tools:
                with _observed_context(tools, claude_code_tools, transcript) as context:
                    response = await super().request(with_own_files(messages, self.system), model_settings, parameters)
        return with_details(response, context.report)

    async def _completed(self, transcript: Transcript) -> list[Message]:
        try:
            return await transcript.complete()
        except CLIConnectionError as error:
            raise ModelConnectionError(self.model_name, str(error)) from error

    def _claude_code_tools(
        self, model_settings: ModelSettings | None, parameters: ModelRequestParameters
    ) -> ClaudeCodeTools | None:
        settings = cast(ClaudeCodeModelSettings, merge_model_settings(self.settings, model_settings) or {})
        claude_code_tools = settings["claude_code_tools"] if "claude_code_tools" in settings else None
        return with_mcp_servers(parameters, claude_code_tools)

    @asynccontextmanager
    async def _offered(
        self, parameters: ModelRequestParameters, run_context: RunContext[Any] | None = None
    ) -> AsyncGenerator[CLITools | None]:
        """Yield the request's tools that the CLI calls, ready to run; None if the agent calls them."""
        if self._agent_tools is None or not parameters.function_tools:
            yield None
            return
        async with self._agent_tools.offered(parameters.function_tools, run_context) as tools:
            yield tools


@contextmanager
def _observed_context(
    tools: CLITools | None, claude_code_tools: ClaudeCodeTools | None, transcript: Transcript | None
) -> Generator[RequestContext]:
    """Open `request_context()`, and add its report to the current span."""
    with request_context(
        tools=tools, claude_code_tools=claude_code_tools, on_message=transcript and transcript.take
    ) as context:
        try:
            yield context
        finally:
            set_span_attributes(context.report)
