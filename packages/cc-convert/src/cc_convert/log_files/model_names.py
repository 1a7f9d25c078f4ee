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
    """Return a model name without dates and without additions by providers, gateways and the CLI.

    The version number is where Anthropic has it: `claude-4.5-sonnet` is `claude-sonnet-4-5`.
    """
    short_name = _short_names.get(name)
    if short_name is None:
        short_name = _BEFORE.sub("", name.strip().lower())
        while (shorter := _AFTER.sub("", short_name)) != short_name:
            short_name = shorter
        if short_name.startswith("claude-"):
            short_name = _DECIMAL.sub("-", short_name)
            short_name = _VERSION_FIRST.sub(lambda found: f"claude-{found[3]}-{found[1]}{found[2] or ''}", short_name)
            short_name = _FAMILY_FIRST.sub(r"claude-\2-\1", short_name)
        short_name = _ALIASES.get(short_name, short_name)
        # Names come from logs: their number is unlimited.
        if len(_short_names) < 1000:
            _short_names[name] = short_name
    return short_name
