"""What one model used and cost, over all threads of a session, in the CLI's own words."""

from typing import Annotated

from .wire import Count, USDollars, WireModel, on_the_wire

__all__ = ["ModelUsage"]


class ModelUsage(WireModel):
    """Tokens and cost of one model."""

    input_tokens: Annotated[Count, on_the_wire("inputTokens")] = 0
    """Input tokens that neither came from the cache nor went into it."""
    output_tokens: Annotated[Count, on_the_wire("outputTokens")] = 0
    """Output tokens, thinking included."""
    cache_read_input_tokens: Annotated[Count, on_the_wire("cacheReadInputTokens")] = 0
    """Input tokens read from the cache."""
    cache_creation_input_tokens: Annotated[Count, on_the_wire("cacheCreationInputTokens")] = 0
    """Input tokens written to the cache."""
    cache_creation_ephemeral_5m_input_tokens: Annotated[
        Count | None, on_the_wire("cacheCreationEphemeral5mInputTokens")
    ] = None
    """Those written for five minutes; `None` from a CLI that does not tell."""
    cache_creation_ephemeral_1h_input_tokens: Annotated[
        Count | None, on_the_wire("cacheCreationEphemeral1hInputTokens")
    ] = None
    """Those written for an hour; `None` from a CLI that does not tell."""
    thinking_tokens: Annotated[Count | None, on_the_wire("thinkingTokens")] = None
    """Tokens of thinking, already counted in the output tokens; `None` from a CLI that does not tell."""
    web_search_requests: Annotated[Count, on_the_wire("webSearchRequests")] = 0
    """Web searches."""
    cost_usd: Annotated[USDollars, on_the_wire("costUSD")] = 0.0
    """What all of it cost."""
    context_window: Annotated[Count, on_the_wire("contextWindow")] = 0
    """How many tokens the model can take in."""
    max_output_tokens: Annotated[Count, on_the_wire("maxOutputTokens")] = 0
    """How many tokens the model may put out at once."""
    canonical_model: Annotated[str | None, on_the_wire("canonicalModel")] = None
    """The model whose price was applied, where the name in use is an alias."""
    provider: str | None = None
    """Who served the model, such as `firstParty` or `bedrock`."""
    cost_basis: Annotated[str | None, on_the_wire("costBasis")] = None
    """Which prices were applied, such as `list`."""
