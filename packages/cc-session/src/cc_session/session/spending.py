"""Spending of a session. The CLI reports totals, which grow over the CLI's session and start again at `/clear`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from claude_agent_sdk import ResultMessage

from cc_convert import convert_sdk_messages_to_cli_response
from cc_types import JsonValue, ModelUsage

from ..errors import MessageParseError

__all__ = ["CostLedger", "Spent"]

# Fields in a `ModelUsage` that are not consumed amounts.
_NO_AMOUNTS = frozenset({"context_window", "max_output_tokens"})

# Prices are per million tokens; smaller amounts are noise from float subtraction. In US dollars.
_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Spent:
    """Money and tokens."""

    cost_usd: float = 0.0
    """In US dollars, by the CLI's estimate."""
    models: Mapping[str, ModelUsage] = field(default_factory=dict[str, ModelUsage])
    """Tokens and cost by model name."""


class CostLedger:
    """Turns the CLI's totals into differences, which are never negative and add up to the session's spending."""

    def __init__(self) -> None:
        self.cost_usd = 0.0
        """Cost since the session was opened, across clears, in US dollars."""
        self._session_id: str | None = None
        self.total_usd = 0.0
        """The CLI's total in the last result, in US dollars."""
        self._models: Mapping[str, ModelUsage] = {}
        self.last = Spent()
        """Amount that the last result added."""

    def begin_at(self, usage: Mapping[str, JsonValue]) -> None:
        """Record the answer to `get_usage` as spent before this session was opened."""
        match usage:
            case {"session": {"total_cost_usd": int() | float() as total, "model_usage": {**models}}}:
                self.total_usd = float(total)
                try:
                    self._models = {name: ModelUsage.model_validate(model) for name, model in models.items()}
                except ValueError as error:
                    raise MessageParseError(reason=f"The usage of the session is invalid: {error}") from error
            case _:
                pass  # an old CLI

    def forget(self) -> None:
        """Count from zero; the CLI's totals continue."""
        self.cost_usd = 0.0
        self.last = Spent()

    def take(self, result: ResultMessage) -> None:
        """Record the totals of a result."""
        if self._session_id not in (None, result.session_id):
            # A cleared conversation continues under another id, with new totals.
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
