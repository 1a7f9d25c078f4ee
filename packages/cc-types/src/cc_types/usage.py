"""A turn's token usage in the main thread, under the Messages API's field names."""

from .json_value import JsonValue
from .wire import Count, WireModel

__all__ = ["CLIUsage", "CacheCreation", "OutputTokensDetails", "ServerToolUse"]


class ServerToolUse(WireModel):
    """Number of tool calls that ran on the API's side."""

    web_search_requests: Count = 0
    """Web searches; each is billed."""
    web_fetch_requests: Count = 0
    """Pages fetched."""


class CacheCreation(WireModel):
    """Tokens written to the prompt cache, by lifetime."""

    ephemeral_1h_input_tokens: Count = 0
    """Tokens that live for an hour."""
    ephemeral_5m_input_tokens: Count = 0
    """Tokens that live for five minutes."""


class OutputTokensDetails(WireModel):
    """Breakdown of the output tokens."""

    thinking_tokens: Count = 0
    """Thinking tokens, included in the output tokens."""


class CLIUsage(WireModel):
    """Tokens in a turn, main thread only; `CLIResponse.model_usage` includes subagents."""

    input_tokens: Count = 0
    """Input tokens that were neither read from the cache nor written to it."""
    output_tokens: Count = 0
    """Output tokens, thinking included."""
    cache_creation_input_tokens: Count = 0
    """Input tokens written to the cache."""
    cache_read_input_tokens: Count = 0
    """Input tokens read from the cache."""
    server_tool_use: ServerToolUse | None = None
    """Tool calls that ran on the API's side."""
    service_tier: str | None = None
    """The request's service tier: `standard`, `priority` or `batch`."""
    cache_creation: CacheCreation | None = None
    """Tokens written to the cache, by lifetime."""
    output_tokens_details: OutputTokensDetails | None = None
    """Breakdown of the output tokens."""
    inference_geo: str | None = None
    """Region where the model ran, which can change the price."""
    speed: str | None = None
    """`standard` or `fast`, which can change the price."""
    iterations: list[JsonValue] | None = None
    """Usage by sampling iteration, when the API ran several for the request."""
    fallback_credit: JsonValue = None
    """Outcome for the fallback credit that the request presented."""
