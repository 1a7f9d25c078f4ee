"""Read the usage in API messages: counts, price factors, and samplings by several models.

Knows neither records nor files.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

from .amounts import Amounts, Counts
from .fields import COUNTS, Record, checked_usage
from .model_names import canonical_model
from .rows import Steps

Traits: TypeAlias = tuple[str, str, str]
"""Price factors: tier, geo and speed."""
_FALLBACK = "fallback_message"
_SAMPLINGS = ("message", _FALLBACK)
ADVICES, COMPACTIONS = ("advisor_message",), ("compaction",)
"""Types of samplings that a request's counts do not contain."""


class MessageUsage(NamedTuple):
    """A request's usage."""

    counts: Counts
    traits: Traits
    model: str
    """The model that finished the answer."""
    steps: Steps

    @property
    def amounts(self) -> Amounts:
        """Return the counts as amounts."""
        return Amounts(*self.counts)


def message_usage(message: Mapping[str, Any]) -> MessageUsage | None:
    """Return the usage in an API message; `None` if it has none."""
    usage: Record | None = message.get("usage")
    if usage is None:
        return None
    model, counts, steps = message.get("model") or "", counts_in(usage), ()
    if len(iterations := usage.get("iterations") or ()) > 1:
        model = answering_model(iterations) or model
        steps = _steps(iterations, counts, model)
    return MessageUsage(counts, traits_in(usage), model, steps)


def traits_in(usage: Record) -> Traits:
    """Return the price factors in a checked usage."""
    return usage.get("service_tier") or "", usage.get("inference_geo") or "", usage.get("speed") or ""


def counts_in(usage: Record) -> Counts:
    """Return the counts in a checked usage."""
    get = usage.get
    written, hour = get("cache_creation_input_tokens") or 0, 0
    split = get("cache_creation")
    if split:
        hour = split.get("ephemeral_1h_input_tokens") or 0
        # The total takes precedence, as in the CLI; without a total, the parts are used.
        written = written or hour + (split.get("ephemeral_5m_input_tokens") or 0)
        hour = min(hour, written)
    details, server = get("output_tokens_details"), get("server_tool_use")
    thinking = (details.get("thinking_tokens") or 0) if details else 0
    searches = (server.get("web_search_requests") or 0) if server else 0
    uncached, output, read = [get(name) or 0 for name in COUNTS[:3]]
    return uncached, output, read, written - hour, hour, thinking, searches


def samplings_in(iterations: Sequence[object], types: Sequence[str] = _SAMPLINGS) -> list[tuple[str, Record]]:
    """Return a request's samplings of some types, each with its model, which may be empty."""
    records = [cast("Record", iteration) for iteration in iterations if isinstance(iteration, dict)]
    samplings = [record for record in records if record.get("type") in types]
    return [(model if isinstance(model := sampling.get("model"), str) else "", sampling) for sampling in samplings]


def answering_model(iterations: Sequence[object]) -> str:
    """Return the model that finished a request after another model declined it; empty if there is none."""
    models = [model for model, sampling in samplings_in(iterations) if sampling["type"] == _FALLBACK]
    return models[-1] if models else ""


def _steps(iterations: Sequence[object], counts: Counts, model: str) -> Steps:
    """Return the counts in each sampling by a model, if they add up to the request counts."""
    name = canonical_model(model)
    samplings = [
        record
        for model_name, record in samplings_in(iterations)
        if not model_name or canonical_model(model_name) == name
    ]
    steps = [counts_in(checked_usage(sampling)[0])[:5] for sampling in samplings]
    if len(steps) < 2 or [sum(column) for column in zip(*steps, strict=True)][:3] != list(counts[:3]):
        return ()
    return tuple(steps)
