"""Costs by a dated price list. A model that is not on the list has no price; nothing is guessed."""

import json
import os
from collections.abc import Mapping
from operator import mul
from typing import Any, TypeAlias, TypeVar, cast

from . import price_table
from .log_files.amounts import Counts
from .log_files.model_names import canonical_model
from .log_files.rows import Row, Steps

__all__ = ["PriceFileError", "Prices"]

Rates: TypeAlias = tuple[float, float, float, float, float]
_ValueT = TypeVar("_ValueT")
_MILLION = 1_000_000


class PriceFileError(ValueError):
    """Raised if a file with prices cannot be used."""


class Prices:
    """A price list.

    Args:
        models: By model: input, output, cache read, 5-minute write and 1-hour write, in US dollars per million tokens.
        fast: The same for fast mode.
        long: By model: a number of prompt tokens, and the prices from this number on.
        geo: Factors by region.
        tiers: Factors by service tier.
        web_search: The price per web search.
        as_of: The day when the list was made.
    """

    def __init__(
        self,
        models: Mapping[str, Rates] = price_table.MODELS,
        *,
        fast: Mapping[str, Rates] = price_table.FAST,
        long: Mapping[str, tuple[int, Rates]] = price_table.LONG,
        geo: Mapping[str, float] = price_table.GEO,
        tiers: Mapping[str, float] = price_table.TIERS,
        web_search: float = price_table.WEB_SEARCH,
        as_of: str = price_table.AS_OF,
    ) -> None:
        self.as_of = as_of
        self._models, self._fast, self._long_context = models, fast, long
        self._geo, self._tiers, self._web_search = geo, tiers, web_search

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], *, replaces: bool = False) -> "Prices":
        """Read prices from JSON.

        Args:
            path: An object with `models`, and optionally `fast`, `long`, `geo`, `tiers`, `web_search`, `as_of`.
            replaces: True if the file replaces the built-in list completely; else it is added, and has precedence.

        Returns:
            The list.

        Raises:
            PriceFileError: The file does not hold such a list.
            OSError: The file cannot be read.
        """
        try:
            with open(path, "rb") as file:
                table = cast("object", json.load(file))
            if not isinstance(table, dict):
                raise TypeError("not an object")
            fields = cast("dict[str, Any]", table)
            models = _all_rates(fields["models"])

            def with_built_in(given: dict[str, _ValueT], built_in: Mapping[str, _ValueT]) -> dict[str, _ValueT]:
                # A model in the file has no other prices of the built-in list.
                return given if replaces else {name: built_in[name] for name in built_in.keys() - models.keys()} | given

            long_context = {
                name: (int(above), _rates(rates)) for name, (above, rates) in fields.get("long", {}).items()
            }
            return cls(
                with_built_in(models, price_table.MODELS),
                fast=with_built_in(_all_rates(fields.get("fast", {})), price_table.FAST),
                long=with_built_in(long_context, price_table.LONG),
                geo=with_built_in(_factors(fields.get("geo", {})), price_table.GEO),
                tiers=with_built_in(_factors(fields.get("tiers", {})), price_table.TIERS),
                web_search=float(fields.get("web_search", price_table.WEB_SEARCH)),
                as_of=str(fields.get("as_of", os.path.basename(path))),
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            reason = f"it has no {error}" if isinstance(error, KeyError) else f"{type(error).__name__}: {error}"
            raise PriceFileError(f"{path} is not a price list: {reason}") from error

    @property
    def identity(self) -> str:
        """Return a text that identifies this list."""
        return repr(
            (self.as_of, self._models, self._fast, self._long_context, self._geo, self._tiers, self._web_search)
        )

    def knows(self, model: str) -> bool:
        """Return true if a model has a price."""
        return self._name(model) in self._models

    @property
    def models(self) -> list[str]:
        """Return the models that have a price."""
        return list(self._models)

    def cost(self, row: Row) -> float | None:
        """Return a row cost in US dollars; `None` if its model has no price and some usage is charged."""
        if row.kind == "error":
            return 0.0
        # Fields by position: their names take longer, and this runs for each row.
        cost = self.cost_of(row[9:16], row.model, row[16:19], row.steps)
        # A gateway name for a model has no price; the requested model has.
        return self.cost_of(row[9:16], row.requested, row[16:19]) if cost is None and row.requested else cost

    def cost_of(
        self, counts: Counts, model: str, traits: tuple[str, str, str] = ("", "", ""), steps: Steps = ()
    ) -> float | None:
        """Return a request's cost in US dollars; `None` if the model has no price and some usage is charged.

        Args:
            counts: Counts for the whole request.
            model: The model name.
            traits: Service tier, region and speed.
            steps: Counts by sampling, if the API ran several.
        """
        tier, geo, speed = traits
        tokens, searches = counts[:5], counts[6]
        name = self._name(model)
        rates = (self._fast.get(name) if speed == "fast" else None) or self._models.get(name)
        if rates is None:
            return None if any(tokens) or searches else 0.0
        long_context = self._long_context.get(name) if speed != "fast" else None
        dollars = 0.0
        for step in steps or (tokens,):
            is_long = long_context is not None and step[0] + sum(step[2:5]) > long_context[0]
            step_rates = long_context[1] if long_context and is_long else rates
            uncached, output, read, five_minutes, hour = map(mul, step, step_rates)
            dollars += uncached + output + read + five_minutes + hour
        if steps:
            # Cache writes whose lifetime the steps do not state.
            five_minutes, hour = (tokens[at] - sum(step[at] for step in steps) for at in (3, 4))
            dollars += five_minutes * rates[3] + hour * rates[4]
        factor = self._geo.get(geo, 1.0) * self._tiers.get(tier, 1.0)
        return dollars * factor / _MILLION + searches * self._web_search

    def _name(self, model: str) -> str:
        return model if model in self._models else canonical_model(model)


def _all_rates(table: dict[str, object]) -> dict[str, Rates]:
    return {name: _rates(rates) for name, rates in table.items()}


def _factors(table: dict[str, float]) -> dict[str, float]:
    return {name: float(factor) for name, factor in table.items()}


def _rates(rates: object) -> Rates:
    numbers = [float(rate) for rate in cast("list[float]", rates)]
    if len(numbers) != 5 or not all(0 <= number < float("inf") for number in numbers):
        raise ValueError("a model needs five prices, none of them negative")
    return (numbers[0], numbers[1], numbers[2], numbers[3], numbers[4])
