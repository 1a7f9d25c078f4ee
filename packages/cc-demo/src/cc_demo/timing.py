"""The times of model requests and of tool calls, taken where they happen. It shows nothing, and changes nothing."""

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

__all__ = ["TimedModel", "Timing", "ToolTimes"]


@dataclass(frozen=True, slots=True)
class Timing:
    """One request, in seconds."""

    has_started: bool
    """Whether a process was started for it."""
    wait: float
    """From sending it to the first event of the answer."""
    total: float
    """From sending it to the end of the answer."""

    @property
    def writing(self) -> float:
        """From the first event of the answer to its end."""
        return self.total - self.wait


class TimedModel(WrapperModel):
    """`wrapped`, with the times of its streamed requests in `timings`. For one request at a time.

    Args:
        wrapped: The model.
        transport: The transport under it, which knows of the processes that were started.
    """

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
        """Make one request, and note its times if it ends well."""
        starts = self.transport.stats().starts
        sent = time.perf_counter()
        async with super().request_stream(messages, model_settings, model_request_parameters, run_context) as response:
            # The stream is handed out when its first event is there.
            begun = time.perf_counter()
            yield response
            ended = time.perf_counter()
        has_started = self.transport.stats().starts > starts
        self.timings.append(Timing(has_started, begun - sent, ended - sent))


class ToolTimes(AbstractCapability[Any]):
    """How long each tool call took, in seconds, by its id; also of one that failed."""

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
        begun = time.perf_counter()
        try:
            return await handler(args)
        finally:
            self.seconds[call.tool_call_id] = time.perf_counter() - begun
