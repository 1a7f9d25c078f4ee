"""A canonical name per model, for the names from all providers, gateways and logs."""

import re

# A provider, a gateway, a region, a cloud's resource name: `us.anthropic.`, `bedrock/`, `openrouter/anthropic/`,
# `arn:aws:bedrock:…:inference-profile/eu.anthropic.`, `publishers/anthropic/models/`, `databricks-`.
_BEFORE = re.compile(r"^(?:.*[/.:])?(?:databricks-)?(?=claude-)|^models/")
_AFTER = re.compile(
    r"(?:\[1m\]|-v\d+(?::\d+)?|@(?:\d{8}|latest|default)|[-:](?:thinking|beta|latest)|:\d+k?|-20\d{6})$"
)
_DECIMAL = re.compile(r"(?<=\d)\.(?=\d)")
_VERSION_FIRST = re.compile(r"^claude-([4-9]|\d\d)(-\d\d?)?-([a-z]+)(?=$|-)")
_FAMILY_FIRST = re.compile(r"^claude-([a-z]+)-(3(?:-\d)?)$")
_ALIASES = {"claude-sonnet-4": "claude-sonnet-4-0", "claude-opus-4": "claude-opus-4-0"}
_short_names: dict[str, str] = {}


def canonical_model(name: str) -> str:
    """Return a model's name without dates and without additions by providers, gateways and the CLI.

    The version's number is where Anthropic has it: `claude-4.5-sonnet` is `claude-sonnet-4-5`.
    """
    short = _short_names.get(name)
    if short is None:
        short = _BEFORE.sub("", name.strip().lower())
        while (shorter := _AFTER.sub("", short)) != short:
            short = shorter
        if short.startswith("claude-"):
            short = _DECIMAL.sub("-", short)
            short = _VERSION_FIRST.sub(lambda found: f"claude-{found[3]}-{found[1]}{found[2] or ''}", short)
            short = _FAMILY_FIRST.sub(r"claude-\2-\1", short)
        short = _ALIASES.get(short, short)
        # Names come from logs: their number is unlimited.
        if len(_short_names) < 1000:
            _short_names[name] = short
    return short
