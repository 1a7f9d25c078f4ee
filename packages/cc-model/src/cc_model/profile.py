"""Capabilities of a model behind Claude Code.

Pure functions: from a model name to a pydantic-ai profile.
"""

from genai_prices.data_snapshot import get_snapshot
from pydantic_ai.profiles import ModelProfile, merge_profile
from pydantic_ai.profiles.anthropic import AnthropicModelProfile
from pydantic_ai.providers.anthropic import AnthropicProvider

# Model ids that Claude Code 2.1.329 sends to the API for an alias. Only the profile depends on them: the CLI gets the
# alias itself, and the response names the model that answered.
_ALIASES = {
    "default": "claude-opus-5-5",
    "fable": "claude-fable-5-2",
    "haiku": "claude-haiku-5-5",
    "opus": "claude-opus-5-5",
    "opusplan": "claude-sonnet-5-5",
    "sonnet": "claude-sonnet-5-5",
}

# Claude Code's suffix for the longest available context.
_LONG = "[1m]"
_LONG_TOKENS = 1_000_000


def resolve_alias(model_name: str) -> str:
    """Return the model id for a Claude Code name such as `"sonnet"` or `"opus[1m]"`; other names stay as they are."""
    name = model_name.removesuffix(_LONG)
    return _ALIASES.get(name, name)


def claude_code_profile(model_name: str) -> ModelProfile:
    """Return a model profile, by id or alias, without features that Claude Code does not transmit."""
    model_id = resolve_alias(model_name)
    without_batches = AnthropicModelProfile(anthropic_supports_message_batches=False)
    profile = merge_profile(AnthropicProvider.model_profile(model_id), without_batches)
    # pydantic-ai looks up the size by name and address, and the address may be a gateway's.
    if (tokens := _context_window(model_name, model_id)) is not None:
        profile = merge_profile(profile, ModelProfile(context_window=tokens))
    return profile


def _context_window(model_name: str, model_id: str) -> int | None:
    if model_name.endswith(_LONG):
        return _LONG_TOKENS
    try:
        _, model = get_snapshot().find_provider_model(
            model_id, provider=None, provider_id="anthropic", provider_api_url=None
        )
    except LookupError:
        return None
    return model.context_window
