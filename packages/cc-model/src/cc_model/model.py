"""Claude Code as a pydantic-ai model: `ClaudeCodeModel`.

It is `AnthropicModel` over another transport. `AnthropicModel` maps parts, tools, output modes, streaming, usage and
finish reasons; this module has only the differences.
"""

import asyncio
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from datetime import timedelta
from typing import Any, TypeAlias, cast

from claude_agent_sdk import Message
from claude_agent_sdk.types import McpServerConfig
from pydantic_ai import RunContext
from pydantic_ai.exceptions import ModelAPIError, ModelConnectionError
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings
from pydantic_ai.profiles import ModelProfileSpec
from pydantic_ai.settings import ModelSettings, merge_model_settings
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.usage import RequestUsage

from cc_ipc import TransportType
from cc_messages import ClaudeCodeTools, CLITools, RequestContext, request_context
from cc_types import CLIConnectionError, CLIResponse, JsonValue

from .agent_tools import AgentTools
from .arguments import check_arguments, checked_model_name
from .errors import ToolsetNotRegisteredError, claude_code_errors
from .histories import with_own_files, with_own_parts
from .loop_usage import LoopUsage
from .mcp_server_tools import with_mcp_servers, without_mcp_servers
from .provider import ClaudeCodeProvider, check_provider, default_provider
from .reports import add_to_stream, set_span_attributes, with_details
from .request_log import LogEntry
from .run_context import run_context_for
from .transcript import MessageCallback, Transcript, metadata

# Lifetime of a breakpoint without a TTL.
_DEFAULT_RETENTION = timedelta(minutes=5)

_Arguments: TypeAlias = tuple[list[ModelMessage], ModelSettings | None, ModelRequestParameters]


class ClaudeCodeModelSettings(AnthropicModelSettings, total=False):
    """The settings of `AnthropicModel`, which reach the API through Claude Code unchanged.

    In the CLI loop, which `claude_code_tools` also uses, cache settings are left out: Claude Code places
    breakpoints there.
    """

    claude_code_tools: ClaudeCodeTools
    """Claude Code tools for the request. `claude_code(tools=…)` sets it for an agent."""


class ClaudeCodeModel(AnthropicModel):
    """Claude model, answered by the Claude Code CLI with the CLI login.

    The agent owns the loop: tools run in the agent, and the CLI answers a single request at a time. The model gets the
    same input as through the API: no built-in tools, no settings, no files. With `set_agent_toolsets()` the CLI runs
    the loop instead.

    Args:
        model_name: A model id, or a Claude Code alias such as `"sonnet"`; with or without `claude-code:` before it.
        provider: Process pool; by default all models in this Python process share a pool.
        settings: Default settings for requests.
        profile: The model capabilities, if the default is wrong.
        message_callback: Called in the request event loop with each CLI message, as SDK types, up to the
            `ResultMessage`, which the request then waits for: some milliseconds. If a stream is left early, the
            `ResultMessage` comes afterwards. If none comes after a complete answer, a warning is logged. It may be a
            coroutine function. Exceptions are logged.

    Raises:
        TypeError: `provider` is not a `ClaudeCodeProvider`, or `model_name` is not a text.
        ValueError: `model_name` is empty, or begins with another provider, such as `anthropic:`.
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
        check_provider(provider)
        name = checked_model_name(model_name)
        super().__init__(name, provider=provider or default_provider(), settings=settings, profile=profile)
        self._message_callback = message_callback
        self._agent_tools: AgentTools | None = None

    @property
    def base_url(self) -> str:
        """The API address for spans, without path; empty for a cloud provider's own address."""
        return cast(ClaudeCodeProvider, self._provider).transport.api_origin

    @property
    def batch_max_requests(self) -> int | None:
        """Maximum size of a batch: None, since Claude Code has no batches."""
        return None

    def resolve_cache_retention(self, model_settings: ModelSettings | None) -> timedelta | None:
        """Return the longest lifetime among the cache breakpoints in the settings, or else the default lifetime."""
        retention = super().resolve_cache_retention(model_settings)
        if retention is None and cast(ClaudeCodeProvider, self._provider).cache_breakpoints:
            return _DEFAULT_RETENTION
        return retention

    def set_agent_toolsets(
        self,
        toolsets: AbstractToolset[Any] | Sequence[AbstractToolset[Any]] | None,
        *,
        server_name: str = "pydantic_tools",
        transport: TransportType = "auto",
        max_turns: int | None = None,
    ) -> None:
        """Let the CLI run the loop: it calls the tools itself and asks the model again, until there is an answer.

        The agent then sees a single request, however many steps the CLI takes: the response has the calls and results
        as native tool parts, in order. Only tools that the request offers as function tools can be called. They run in
        the request event loop: in an agent run those of the run, with its dependencies and capabilities.

        A call of an output tool, or of one that needs an approval or an outside result, ends the loop; the agent then
        answers all calls of that API response. A tool that raises `ApprovalRequired` or `CallDeferred` fails.

        Args:
            toolsets: The toolsets, such as `agent.toolsets`, whose tools run for requests outside of an agent run; None
                gives the loop back to the agent.
            server_name: The model sees the tools as `mcp__SERVER_NAME__TOOL`.
            transport: Transport to the CLI: `"stdio"` is a bridge process, `"sdk"` the existing connection, `"auto"`
                the better available transport (`cc_ipc.resolve_transport()` gives the reason).
            max_turns: Maximum number of API calls for a request; then it ends with `UsageLimitExceeded`.

        Raises:
            cc_ipc.TransportUnavailableError: The transport is not available here.
            ValueError: `server_name` is not a valid server name, or `max_turns` is less than 1.
        """
        check_arguments(max_turns=max_turns)
        if toolsets is None:
            self._agent_tools = None
            return
        toolsets = [toolsets] if isinstance(toolsets, AbstractToolset) else toolsets
        self._agent_tools = AgentTools(self, toolsets, server_name, transport, max_turns)

    def get_mcp_servers(self) -> dict[str, McpServerConfig]:
        """Return the MCP servers that give the CLI the tools from `set_agent_toolsets()`, by name; empty without it.

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
        """Make a request.

        Raises:
            UserError: There is no Claude Code CLI.
            ModelHTTPError: The API answered with an error. `ModelPlanLimitError` if the plan is used up.
            ModelTimeoutError: No process became free in time; `phase` is `"pool"`, the cause a `QueueTimeoutError`.
            ModelConnectionError: A process failed, or lost the connection to the API.
            cc_ipc.ToolNotFoundError: No registered toolset has a function tool.
        """
        transcript = None if self._message_callback is None else Transcript(self._message_callback)
        try:
            response = await self._request(messages, model_settings, model_request_parameters, transcript)
        except ModelAPIError as error:
            raise error.with_traceback(None) from error.__cause__  # without our frames, which say nothing more
        if transcript is not None:
            await transcript.complete_if_possible()
        return response

    async def request_with_metadata(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> tuple[ModelResponse, CLIResponse]:
        """Make a request; return the response and the CLI report.

        Raises:
            ModelConnectionError: The CLI sent no report after the answer.
            Exception: An error as from `request()`.
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
        """Make a request and yield the SDK messages as the CLI sends them; the last is the result.

        Only the CLI runs tools, so function tools must be set with `set_agent_toolsets()` first.

        Raises:
            ToolsetNotRegisteredError: There are function tools and no toolsets.
            ModelConnectionError: The CLI sent no result after the answer.
            Exception: An error as from `request()`, after the messages that came before.
        """
        function_tools = model_request_parameters.function_tools
        if function_tools and self._agent_tools is None:
            raise ToolsetNotRegisteredError(tools=[tool.name for tool in function_tools])
        queue: asyncio.Queue[Message | None] = asyncio.Queue()
        transcript = Transcript(self._message_callback, queue)

        async def request() -> None:
            try:
                await self._request(messages, model_settings, model_request_parameters, transcript)
                await self._completed(transcript)
            finally:
                queue.put_nowait(None)

        task = asyncio.create_task(request())
        try:
            while (message := await queue.get()) is not None:
                yield message
            await task
        finally:
            task.cancel()
            await asyncio.wait({task})

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Make a request and yield its stream. Raises the errors of `request()`, also while the stream is read."""
        transcript = None if self._message_callback is None else Transcript(self._message_callback)
        async with AsyncExitStack() as stack:
            prepared = self._prepared(messages, model_settings, model_request_parameters, transcript, run_context)
            arguments, observed_context, entry, usage = await stack.enter_async_context(prepared)
            # Only while the request is sent: a stream may be closed in another task than it was opened in.
            with observed_context as context:
                response = await stack.enter_async_context(super().request_stream(*arguments, run_context))
            add_to_stream(response, context, usage.mark)
            is_broken = True
            try:
                yield response
                is_broken = False
            finally:
                answer = response.get()
                usage.end(answer, is_broken=is_broken)
                if entry is not None:
                    entry.response = answer
        if transcript is not None:
            await transcript.complete_if_possible()

    async def count_tokens(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> RequestUsage:
        """Return the API token count for a request, without Claude Code additions.

        A process is used only to find the id for an alias, once.

        Raises:
            ModelHTTPError: There is no API key or gateway's token (status 404), or the API refuses.
        """
        parameters = with_own_files(without_mcp_servers(model_request_parameters), self.system)
        return await super().count_tokens(with_own_parts(messages, self.system), model_settings, parameters)

    async def _request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        parameters: ModelRequestParameters,
        transcript: Transcript | None,
    ) -> ModelResponse:
        prepared = self._prepared(messages, model_settings, parameters, transcript)
        async with prepared as (arguments, observed_context, entry, usage):
            with observed_context as context:
                response = await super().request(*arguments)
            usage.end(response, is_broken=False)
            if entry is not None:
                entry.response = response
        usage.mark(response)
        return with_details(response, context.report)

    @asynccontextmanager
    async def _prepared(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        parameters: ModelRequestParameters,
        transcript: Transcript | None,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[tuple[_Arguments, AbstractContextManager[RequestContext], LogEntry | None, LoopUsage]]:
        """Yield the request for `AnthropicModel`, its context, and its entry in the log, if there is a log.

        Convert errors, and end the CLI tools afterwards.

        `request()` does not drain the stream: an API error after the answer has begun, as in the CLI loop, comes to
        `request()` as a status, which the client may retry, and to a stream as an event.
        """
        settings = cast(ClaudeCodeModelSettings, merge_model_settings(self.settings, model_settings) or {})
        claude_code_tools = with_mcp_servers(parameters, settings.get("claude_code_tools"))
        parameters = with_own_files(without_mcp_servers(parameters), self.system)
        provider = cast(ClaudeCodeProvider, self._provider)
        current = run_context_for(self, run_context)
        usage = LoopUsage(current, self.base_url)
        tools = (
            self._agent_tools.offered(parameters.function_tools, run_context)
            if self._agent_tools is not None and parameters.function_tools
            else nullcontext()
        )
        entry = None
        if provider.log is not None:
            entry = LogEntry(provider.log, self.model_name, messages, current)
        with claude_code_errors(self.model_name, provider.transport.login_advice), entry or nullcontext():
            async with tools as cli_tools:
                arguments = (with_own_parts(messages, self.system), model_settings, parameters)
                observed_context = _observed_context(cli_tools, claude_code_tools, transcript, entry, usage)
                try:
                    yield arguments, observed_context, entry, usage
                except Exception:
                    if (error := usage.error()) is not None:
                        raise error from None
                    raise

    async def _completed(self, transcript: Transcript) -> list[Message]:
        try:
            return await transcript.complete()
        except CLIConnectionError as error:
            raise ModelConnectionError(self.model_name, str(error)) from error


@contextmanager
def _observed_context(
    tools: CLITools | None,
    claude_code_tools: ClaudeCodeTools | None,
    transcript: Transcript | None,
    entry: LogEntry | None,
    usage: LoopUsage,
) -> Generator[RequestContext]:
    """Open `request_context()`, and add its report to the current span and to the log."""

    def take_counts(message: Mapping[str, JsonValue]) -> None:
        usage.take_counts(message)
        if entry is not None:
            entry.take_usage(message)

    has_loop = tools is not None or claude_code_tools is not None
    with request_context(
        tools=tools,
        claude_code_tools=claude_code_tools,
        on_message=transcript and transcript.take,
        on_usage=take_counts if has_loop else entry and entry.take_usage,
        on_step=usage.take_step if has_loop else None,
    ) as context:
        usage.request = context
        try:
            yield context
        finally:
            set_span_attributes(context.report)
            if entry is not None:
                entry.report = context.report
