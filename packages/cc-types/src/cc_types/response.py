"""The CLI result message: how a turn ended, with result, time and cost."""

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field, JsonValue

from .usage import CLIUsage, ModelUsage
from .wire import Count, JsonObject, USDollars, Whole, WireModel, null_as, on_the_wire


class PermissionDenial(WireModel):
    """A tool call that was denied."""

    tool_name: str
    """The tool name."""
    tool_use_id: str
    """The id of the call, from the model."""
    tool_input: JsonObject = Field(default_factory=dict[str, JsonValue])
    """The call arguments."""


class DeferredToolUse(WireModel):
    """A tool call that a hook deferred; the run stopped before it."""

    id: str
    """The id of the call, from the model."""
    name: str
    """The tool name."""
    input: JsonObject = Field(default_factory=dict[str, JsonValue])
    """The call arguments."""


class CLIResponse(WireModel):
    """A turn result, as the CLI reports it.

    `subtype` alone does not show success: a turn that ended with an API error has the subtype `success`. Use
    `succeeded`.
    """

    type: Literal["result"] = "result"
    """The message's type."""
    subtype: str
    """`success`, or the limit or failure that ended the turn, such as `error_max_turns`."""
    is_error: bool
    """True if the turn failed."""
    duration_ms: Count = 0
    """Wall-clock time of the turn, in milliseconds."""
    duration_api_ms: Count = 0
    """Time spent in API requests, in milliseconds."""
    num_turns: Count = 0
    """Number of requests to the model; 0 for a message that needed none."""
    session_id: str | None = None
    """The id of the session."""
    result: Annotated[str, null_as(""), Whole] = ""
    """Final text; empty if the CLI reports none."""
    stop_reason: str | None = None
    """Reason why the model stopped, such as `end_turn`."""
    terminal_reason: str | None = None
    """Reason why the turn ended, such as `completed`, `max_turns` or `aborted_tools`."""
    total_cost_usd: USDollars | None = None
    """The session cost so far, earlier turns included: subtract to get a single turn's cost."""
    usage: Annotated[CLIUsage, null_as({})] = Field(default_factory=CLIUsage)
    """Tokens in this turn, main thread only."""
    model_usage: Annotated[dict[str, ModelUsage] | None, on_the_wire("modelUsage")] = None
    """Tokens and cost by model, all threads, over the session so far: subtract to get a single turn's."""
    model_usage_since_last_result: dict[str, ModelUsage] | None = None
    """The same since the previous result. Only in stream-json, not in the SDK messages."""
    structured_output: JsonObject | None = None
    """Structured answer, if a schema was given."""
    permission_denials: list[PermissionDenial] | None = None
    """Tool calls that were denied."""
    deferred_tool_use: DeferredToolUse | None = None
    """Tool call before which the run stopped."""
    errors: Annotated[list[str] | None, Whole] = None
    """Error messages."""
    api_error_status: int | None = None
    """HTTP status, if the API answered with an error."""
    api_error_type: str | None = None
    """The API error type, such as `overloaded_error`."""
    api_error_code: str | None = None
    """The API error code, if any."""
    startup_failure_reason: str | None = None
    """Reason why the CLI could not start the session."""
    uuid: str | None = None
    """This message id."""
    origin: dict[str, JsonValue] | None = None
    """The turn trigger, if it was not a prompt by the caller."""
    user_message_uuid: str | None = None
    """Id of the prompt that started the turn."""
    user_message_uuids: list[str] | None = None
    """Ids of all prompts that belong to the turn."""
    queued_turn_count: int | None = None
    """Number of prompts in the queue."""
    result_index: int | None = None
    """This result's index in the process, from 0."""
    ttft_ms: int | None = None
    """Time to the first token, in milliseconds."""
    ttft_stream_ms: int | None = None
    """Time to the first event in the stream, in milliseconds."""
    time_to_request_ms: int | None = None
    """Time until the first API request was sent, in milliseconds."""
    first_content_frame_ms: int | None = None
    """Time to the first part of the content, in milliseconds."""
    subagent_stats: dict[str, JsonValue] | None = None
    """Numbers of subagents started, ended and refused."""
    safety_stops: int | None = None
    """How often a safeguard stopped the turn."""
    interrupted_by_shutdown: bool | None = None
    """True if the CLI was shut down during the turn."""
    stopped_by_permission_check: bool | None = None
    """True if a permission check ended the turn."""
    fast_mode_state: str | None = None
    """`off`, `cooldown` or `on`."""
    fast_mode_disabled_reason: str | None = None
    """Reason why fast mode is not available."""
    credential_expires_at: AwareDatetime | None = None
    """Time when a login with `/login` ends; None with other logins. Renewals of its token do not change it."""

    @property
    def succeeded(self) -> bool:
        """Return true if the turn ended without an error."""
        return self.subtype == "success" and not self.is_error
