"""Convert usage as reported by the CLI to `CLIUsage` and `ModelUsage`: any value gives a number."""

import logging
import math
from collections.abc import Iterable, Mapping

from cc_types import CLIUsage

from .lenient import read
from .shapes import is_json_object

_logger = logging.getLogger(__name__)

_USAGE_COUNTS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_NESTED_COUNTS = {
    "server_tool_use": ("web_search_requests", "web_fetch_requests"),
    "cache_creation": ("ephemeral_1h_input_tokens", "ephemeral_5m_input_tokens"),
    "output_tokens_details": ("thinking_tokens",),
}
_MODEL_COUNTS = (
    "inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "webSearchRequests",
    "contextWindow", "maxOutputTokens",
)  # fmt: skip
_OPTIONAL_MODEL_COUNTS = (
    "thinkingTokens", "cacheCreationEphemeral5mInputTokens", "cacheCreationEphemeral1hInputTokens",
)  # fmt: skip


def convert_usage_dict_to_cli_usage(usage: Mapping[str, object] | None) -> CLIUsage:
    """Convert a result message's usage.

    Args:
        usage: The usage, as reported by the SDK or the CLI.

    Returns:
        The readable counts; 0 for `None`, and, with a warning, for a count that is not a number. Never raises.
    """
    fields = dict(usage) if isinstance(usage, Mapping) else usage
    return read(CLIUsage, checked_usage(fields), where="usage")


def checked_usage(usage: object) -> dict[str, object]:
    """Return a usage with numbers as counts."""
    if not is_json_object(usage):
        if usage is not None:
            _logger.warning("usage is of type %s; using 0 for all of it", type(usage).__name__)
        return {}
    checked = _with_numbers(usage, _USAGE_COUNTS, "usage")
    for name, counts in _NESTED_COUNTS.items():
        nested = checked.get(name)
        if is_json_object(nested):
            checked[name] = _with_numbers(nested, counts, f"usage.{name}")
    return checked


def checked_model_usage(usage: object, name: str) -> object:
    """Return the usage by model, with numbers as counts."""
    if not is_json_object(usage):
        return usage
    checked = usage.copy()
    for model, fields in usage.items():
        if is_json_object(fields):
            optional = [count for count in _OPTIONAL_MODEL_COUNTS if fields.get(count) is not None]
            checked[model] = _with_numbers(fields, (*_MODEL_COUNTS, *optional), f"{name}.{model}")
    return checked


def _with_numbers(fields: dict[str, object], names: Iterable[str], where: str) -> dict[str, object]:
    checked = fields.copy()
    for name in names:
        value = checked.get(name, 0)
        if type(value) is not int or value < 0:
            checked[name] = _safe_int(value, f"{where}.{name}")
    return checked


def _safe_int(value: object, field: str) -> int:
    """Convert any value to a count.

    A bool counts as 1 or 0, a fraction is cut off, and `None` is 0. Any other value is 0; that and a
    lost fraction are logged with the field name and the type, never with the value.
    """
    if value is None:
        return 0
    if not isinstance(value, int | float):
        problem = f"of type {type(value).__name__}"
    elif value < 0:
        problem = "negative"
    elif not math.isfinite(value):
        problem = "not finite"
    else:
        if value != int(value):
            _logger.warning("%s is a count with a fraction; leaving the fraction out", field)
        return int(value)
    _logger.warning("%s is not a count but %s; using 0", field, problem)
    return 0
