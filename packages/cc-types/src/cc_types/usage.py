"""What one turn of the main thread used, in the words of the Messages API."""

from .json_value import JsonValue
from .wire import Count, WireModel

__all__ = ["CLIUsage", "CacheCreation", "OutputTokensDetails", "ServerToolUse"]


class ServerToolUse(WireModel):
    """How often tools ran on the API's side."""

    web_search_requests: Count = 0
    """Web searches, which are billed one by one."""
    web_fetch_requests: Count = 0
    """Pages fetched."""


class CacheCreation(WireModel):
    """Tokens written to the prompt cache, by how long they live there."""

    ephemeral_1h_input_tokens: Count = 0
    """Written for an hour."""
    ephemeral_5m_input_tokens: Count = 0
    """Written for five minutes."""


class OutputTokensDetails(WireModel):
    """What the output tokens were spent on."""

    thinking_tokens: Count = 0
    """Tokens of thinking, already counted in the output tokens."""


class CLIUsage(WireModel):
    """Tokens of one turn. The main thread's only: subagents are counted in `CLIResponse.model_usage`."""

    input_tokens: Count = 0
    """Input tokens that neither came from the cache nor went into it."""
    output_tokens: Count = 0
    """Output tokens, thinking included."""
    cache_creation_input_tokens: Count = 0
    """Input tokens written to the cache."""
    cache_read_input_tokens: Count = 0
    """Input tokens read from the cache."""
    server_tool_use: ServerToolUse | None = None
    """Tools that ran on the API's side."""
    service_tier: str | None = None
    """The tier that served the request: `standard`, `priority` or `batch`."""
    cache_creation: CacheCreation | None = None
    """The tokens written to the cache, by lifetime."""
    output_tokens_details: OutputTokensDetails | None = None
    """What the output tokens were spent on."""
    inference_geo: str | None = None
    """Where inference ran, which can change the price."""
    speed: str | None = None
    """`standard` or `fast`, which can change the price."""
    iterations: list[JsonValue] | None = None
    """Usage of each sampling iteration, when the API ran several for one request."""
    fallback_credit: JsonValue = None
    """What became of a fallback credit that the request presented."""
