"""A canonical name per model, for the names from all providers and logs."""

import re

# Additions to a model's name by Bedrock, Vertex and the CLI.
_BEFORE = re.compile(r"^(?:models/)?(?:(?:us|eu|apac|au|jp|ca|global|us-gov)\.)?(?:anthropic[./])?")
_AFTER = re.compile(r"(?:\[1m\]|-v\d+(?::\d+)?|@(?:\d{8}|latest|default)|-20\d{6}|-latest)$")
_ALIASES = {"claude-sonnet-4": "claude-sonnet-4-0", "claude-opus-4": "claude-opus-4-0"}
_short_names: dict[str, str] = {}


def canonical_model(name: str) -> str:
    """Return a model's name without dates and without additions by providers and the CLI."""
    short = _short_names.get(name)
    if short is None:
        short = _BEFORE.sub("", name.strip().lower())
        while (shorter := _AFTER.sub("", short)) != short:
            short = shorter
        short = _ALIASES.get(short, short)
        # Names come from logs: their number is unlimited.
        if len(_short_names) < 1000:
            _short_names[name] = short
    return short
