"""Token usage: of a turn under the Messages API field names, and of a session by model under the CLI's."""

from typing import Annotated

from pydantic import JsonValue

from .wire import Count, USDollars, WireModel, on_the_wire


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
    """The request service tier: `standard`, `priority` or `batch`."""
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


class ModelUsage(WireModel):
    """A model's tokens and cost, over all threads in a session."""

    input_tokens: Annotated[Count, on_the_wire("inputTokens")] = 0
    """Input tokens that were neither read from the cache nor written to it."""
    output_tokens: Annotated[Count, on_the_wire("outputTokens")] = 0
    """Output tokens, thinking included."""
    cache_read_input_tokens: Annotated[Count, on_the_wire("cacheReadInputTokens")] = 0
    """Input tokens read from the cache."""
    cache_creation_input_tokens: Annotated[Count, on_the_wire("cacheCreationInputTokens")] = 0
    """Input tokens written to the cache."""
    cache_creation_ephemeral_5m_input_tokens: Annotated[
        Count | None, on_the_wire("cacheCreationEphemeral5mInputTokens")
    ] = None
    """Cache writes that live for five minutes; `None` if the CLI does not report them."""
    cache_creation_ephemeral_1h_input_tokens: Annotated[
        Count | None, on_the_wire("cacheCreationEphemeral1hInputTokens")
    ] = None
    """Cache writes that live for an hour; `None` if the CLI does not report them."""
    thinking_tokens: Annotated[Count | None, on_the_wire("thinkingTokens")] = None
    """Thinking tokens, included in the output tokens; `None` if the CLI does not report them."""
    web_search_requests: Annotated[Count, on_the_wire("webSearchRequests")] = 0
    """Number of web searches."""
    cost_usd: Annotated[USDollars, on_the_wire("costUSD")] = 0.0
    """Total cost."""
    context_window: Annotated[Count, on_the_wire("contextWindow")] = 0
    """The model context window, in tokens."""
    max_output_tokens: Annotated[Count, on_the_wire("maxOutputTokens")] = 0
    """Most output tokens in a response."""
    canonical_model: Annotated[str | None, on_the_wire("canonicalModel")] = None
    """The model whose price was applied, if the name in use is an alias."""
    provider: str | None = None
    """The model provider, such as `firstParty` or `bedrock`."""
    cost_basis: Annotated[str | None, on_the_wire("costBasis")] = None
    """Price list that was applied, such as `list`."""
