"""Times of model requests and of tool calls, measured where they happen. Neither shows nor changes anything."""

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability, WrapToolExecuteHandler
from pydantic_ai.messages import ModelMessage, ToolCallPart
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from cc_messages import ClaudeCodeTransport
from cc_model import ClaudeCodeModel


@dataclass(frozen=True, slots=True)
class Timing:
    """Times for a request, in seconds."""

    has_started: bool
    """True if a process was started for it."""
    wait: float
    """Time to the answer's first event."""
    total: float
    """Time to the end of the answer."""


class TimedModel(WrapperModel):
    """A model that adds the times of each streamed request to `timings`. For one request at a time."""

    def __init__(self, wrapped: ClaudeCodeModel, transport: ClaudeCodeTransport) -> None:
        super().__init__(wrapped)
        self.transport = transport
        self.timings: list[Timing] = []

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Make a request, and record the times if it ends well."""
        starts, begin = self.transport.stats().starts, time.perf_counter()
        async with super().request_stream(messages, model_settings, model_request_parameters, run_context) as response:
            wait = time.perf_counter() - begin  # the stream comes with the first event
            yield response
            total = time.perf_counter() - begin
        self.timings.append(Timing(self.transport.stats().starts > starts, wait, total))


class ToolTimes(AbstractCapability[Any]):
    """Duration of each tool call in seconds, by call id; also of calls that failed."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: WrapToolExecuteHandler,
    ) -> Any:
        """Run the tool."""
        begin = time.perf_counter()
        try:
            return await handler(args)
        finally:
            self.seconds[call.tool_call_id] = time.perf_counter() - begin
