"""A model's tokens and cost over all threads in a session, under the CLI's field names."""

from typing import Annotated

from .wire import Count, USDollars, WireModel, on_the_wire

__all__ = ["ModelUsage"]


class ModelUsage(WireModel):
    """A model's tokens and cost."""

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
    """The model's context window, in tokens."""
    max_output_tokens: Annotated[Count, on_the_wire("maxOutputTokens")] = 0
    """Most output tokens in a response."""
    canonical_model: Annotated[str | None, on_the_wire("canonicalModel")] = None
    """The model whose price was applied, if the name in use is an alias."""
    provider: str | None = None
    """The model's provider, such as `firstParty` or `bedrock`."""
    cost_basis: Annotated[str | None, on_the_wire("costBasis")] = None
    """Price list that was applied, such as `list`."""
