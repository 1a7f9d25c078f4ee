"""The CLI's result message: how a turn ended, what came of it, and what it took."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from .json_value import JsonValue
from .model_usage import ModelUsage
from .usage import CLIUsage
from .wire import Count, JsonObject, USDollars, Whole, WireModel, on_the_wire

__all__ = ["CLIResponse", "DeferredToolUse", "PermissionDenial"]


class PermissionDenial(WireModel):
    """A tool call that was not allowed."""

    tool_name: str
    """The tool."""
    tool_use_id: str
    """The model's id of the call."""
    tool_input: JsonObject = Field(default_factory=dict[str, JsonValue])
    """The arguments of the call."""


class DeferredToolUse(WireModel):
    """A tool call that a hook put off; the run stopped before it."""

    id: str
    """The model's id of the call."""
    name: str
    """The tool."""
    input: JsonObject = Field(default_factory=dict[str, JsonValue])
    """The arguments of the call."""


def _empty_if_null(value: object) -> object:
    return "" if value is None else value


def _unused_if_null(value: object) -> object:
    return {} if value is None else value


class CLIResponse(WireModel):
    """The end of a turn, as the CLI reports it.

    `subtype` alone does not tell success: a turn that ended with an error of the API has the subtype `success`. Ask
    `succeeded`.
    """

    type: Literal["result"] = "result"
    """The kind of message."""
    subtype: str
    """`success`, or which limit or failure ended the turn, such as `error_max_turns`."""
    is_error: bool
    """Whether the turn failed."""
    duration_ms: Count = 0
    """Wall-clock time of the turn."""
    duration_api_ms: Count = 0
    """Time spent in requests to the API."""
    num_turns: Count = 0
    """Rounds between model and tools; 0 for a message that asked nothing."""
    session_id: str | None = None
    """The session that the turn belongs to."""
    result: Annotated[str, BeforeValidator(_empty_if_null), Whole] = ""
    """The final text; empty where the CLI reports none."""
    stop_reason: str | None = None
    """Why the model stopped, such as `end_turn`."""
    terminal_reason: str | None = None
    """Why the turn ended, such as `completed`, `max_turns` or `aborted_tools`."""
    total_cost_usd: USDollars | None = None
    """What the session has cost so far, earlier turns included: take differences."""
    usage: Annotated[CLIUsage, BeforeValidator(_unused_if_null)] = Field(default_factory=CLIUsage)
    """Tokens of this turn, main thread only."""
    model_usage: Annotated[dict[str, ModelUsage] | None, on_the_wire("modelUsage")] = None
    """Tokens and cost by model, all threads, over the session so far: take differences."""
    model_usage_since_last_result: dict[str, ModelUsage] | None = None
    """The same since the result before this one. Only in stream-json, not in the SDK's messages."""
    structured_output: JsonObject | None = None
    """The answer as an object, if a schema was asked for."""
    permission_denials: list[PermissionDenial] | None = None
    """Tool calls that were not allowed."""
    deferred_tool_use: DeferredToolUse | None = None
    """The tool call that the run stopped before."""
    errors: Annotated[list[str] | None, Whole] = None
    """What went wrong, in words."""
    api_error_status: int | None = None
    """The HTTP status, if the API answered with an error."""
    api_error_type: str | None = None
    """The API's name for its error, such as `overloaded_error`."""
    api_error_code: str | None = None
    """The API's code for its error, if it has one."""
    startup_failure_reason: str | None = None
    """Why the CLI could not start the session."""
    uuid: str | None = None
    """The id of this message."""
    origin: dict[str, JsonValue] | None = None
    """What started the turn, if not a prompt of the caller's."""
    user_message_uuid: str | None = None
    """The id of the prompt that started the turn."""
    user_message_uuids: list[str] | None = None
    """The ids of all prompts that the turn took in."""
    queued_turn_count: int | None = None
    """Prompts that still wait."""
    result_index: int | None = None
    """Which result of the process this is, from 0."""
    ttft_ms: int | None = None
    """Time to the first token."""
    ttft_stream_ms: int | None = None
    """Time to the first event of the stream."""
    time_to_request_ms: int | None = None
    """Time until the first request left for the API."""
    first_content_frame_ms: int | None = None
    """Time to the first piece of content."""
    subagent_stats: dict[str, JsonValue] | None = None
    """Subagents started, ended and refused."""
    safety_stops: int | None = None
    """How often a safeguard stopped the turn."""
    interrupted_by_shutdown: bool | None = None
    """Whether the CLI was shut down during the turn."""
    stopped_by_permission_check: bool | None = None
    """Whether a permission check ended the turn by itself."""
    fast_mode_state: str | None = None
    """`off`, `cooldown` or `on`."""
    fast_mode_disabled_reason: str | None = None
    """Why fast mode cannot be had."""

    @property
    def succeeded(self) -> bool:
        """Whether the turn ended as it should."""
        return self.subtype == "success" and not self.is_error
