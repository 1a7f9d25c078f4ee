"""Spending of a session. The CLI reports totals that grow over its session and start again at `/clear`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from claude_agent_sdk import ResultMessage

from cc_convert import convert_sdk_messages_to_cli_response
from cc_types import JsonValue, ModelUsage

__all__ = ["CostLedger", "Spent"]

# Fields of a `ModelUsage` that are no consumed amounts.
_NO_AMOUNTS = frozenset({"context_window", "max_output_tokens"})

# Prices are per million tokens; smaller amounts are noise of float subtraction. In US dollars.
_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Spent:
    """An amount of money and of tokens."""

    cost_usd: float = 0.0
    """In US dollars, as the CLI reckons."""
    models: Mapping[str, ModelUsage] = field(default_factory=dict[str, ModelUsage])
    """Tokens and cost by the model's name."""


class CostLedger:
    """Turns the CLI's totals into differences, which are never negative and add up to the session's spending."""

    def __init__(self) -> None:
        self.cost_usd = 0.0
        """Cost of the session since it was opened, across clears, in US dollars."""
        self._session_id: str | None = None
        self.total_usd = 0.0
        """The CLI's own total, as of its last result, in US dollars."""
        self._models: Mapping[str, ModelUsage] = {}
        self.last = Spent()
        """Amount added by the last result."""

    def begin_at(self, usage: Mapping[str, JsonValue]) -> None:
        """Record the answer to `get_usage` as spent before this session was opened."""
        if isinstance(session := usage.get("session"), dict):
            totals = {"total_cost_usd": session.get("total_cost_usd"), "modelUsage": session.get("model_usage")}
            response = convert_sdk_messages_to_cli_response(
                [{"subtype": "", "is_error": False, **totals, "type": "result"}]
            )
            self.total_usd, self._models = response.total_cost_usd or 0.0, response.model_usage or {}

    def forget(self) -> None:
        """Count from zero; the CLI's totals continue."""
        self.cost_usd = 0.0
        self.last = Spent()

    def take(self, result: ResultMessage) -> None:
        """Record the totals of a result."""
        if self._session_id not in (None, result.session_id):
            # A cleared conversation continues under another id, with totals of its own.
            self.total_usd, self._models = 0.0, dict[str, ModelUsage]()
        self._session_id = result.session_id
        self.last = Spent()
        if result.total_cost_usd == self.total_usd and not result.num_turns:
            return  # the answer to a message without a question
        totals = convert_sdk_messages_to_cli_response([result])
        cost = max(totals.total_cost_usd or 0.0, self.total_usd)
        models = {**self._models, **(totals.model_usage or {})}
        self.last = Spent(round(cost - self.total_usd, _DIGITS), _difference(models, self._models))
        self.cost_usd = round(self.cost_usd + self.last.cost_usd, _DIGITS)
        self.total_usd, self._models = cost, models


def _difference(now: Mapping[str, ModelUsage], before: Mapping[str, ModelUsage]) -> dict[str, ModelUsage]:
    differences = {name: _less(usage, before.get(name)) for name, usage in now.items()}
    return {name: usage for name, usage in differences.items() if any(_amounts(usage).values())}


def _less(usage: ModelUsage, before: ModelUsage | None) -> ModelUsage:
    if before is None:
        return usage
    amounts = _amounts(before)
    return usage.model_copy(
        update={name: max(0, round(amount - amounts.get(name, 0), _DIGITS)) for name, amount in _amounts(usage).items()}
    )


def _amounts(usage: ModelUsage) -> dict[str, float]:
    return {
        name: value
        for name in ModelUsage.model_fields
        if name not in _NO_AMOUNTS and isinstance(value := getattr(usage, name), int | float)
    }
