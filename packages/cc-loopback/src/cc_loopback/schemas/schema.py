"""Examples for JSON Schemas: `example(schema)`.

It proposes values, the likeliest first, and returns the first that is valid. Objects get only required properties.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count, cycle, islice
from typing import Any, cast

from ..api.errors import LoopbackError
from ..api.types import JsonValue
from .conforms import Schema, SchemaValidator, property_schemas
from .flatten import FlatSchema, Flattener
from .pattern import text_for
from .words import TEXT_BY_FORMAT, number_for, word_for

# Limits of the search. Ordinary schemas need one proposal; the limits end the search if no value exists.
_MAX_FORMS = 100
_MAX_PROPOSALS = 60
_MAX_STEPS = 20_000
_NEIGHBOURS = 12
_VARIANTS = 3
# Once is enough except for unusual schemas, and gives the smallest example for a recursive schema.
_REPEATS = (1, 2)
_TYPES = ("string", "integer", "number", "boolean", "object", "array", "null")
_HINTS = {
    "object": ("properties", "required", "additionalProperties", "minProperties", "patternProperties"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems"),
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}


class SchemaError(LoopbackError, ValueError):
    """No example was found: the schema allows no value, or only values that the search does not find."""


def example(schema: Mapping[str, Any] | bool) -> JsonValue:
    """Return a value that is valid for `schema`, the same value on every call.

    Raises:
        SchemaError: No valid value was found.
    """
    validator = SchemaValidator(schema)
    for repeats in _REPEATS:
        for value in _Search(validator, repeats).values(schema, "", ()):
            return value
    raise SchemaError(f"no example found for the schema {json.dumps(schema, default=str)[:500]}")


class _Search:
    def __init__(self, validator: SchemaValidator, repeats: int) -> None:
        self._validator = validator
        self._flattener = Flattener(validator, repeats)
        self._steps = 0

    def values(self, schema: Schema, name: str, path: tuple[str, ...]) -> Iterator[JsonValue]:
        """Yield valid values, each once, for the property `name`; `path` has the references that led here."""
        values: list[JsonValue] = []
        is_valid, is_repeated = self._validator.predicate(schema), self._validator.predicate({"enum": values})
        for flat, flat_path in islice(self._flattener.flat(schema, path), _MAX_FORMS):
            if self._is_over():
                return
            for value in self._proposals(flat, name, flat_path):
                if self._is_over():
                    return
                if is_valid(value) and not is_repeated(value):
                    values.append(value)
                    yield value

    def _is_over(self) -> bool:
        self._steps += 1
        return self._steps > _MAX_STEPS

    def _proposals(self, flat: FlatSchema, name: str, path: tuple[str, ...]) -> Iterator[JsonValue]:
        for key in ("const", "default"):
            if key in flat:
                yield flat[key]
        yield from flat.get("enum", ())
        yield from flat.get("examples", ())
        for kind in _kinds(flat):
            yield from islice(self._of_kind(kind, flat, name, path), _MAX_PROPOSALS)

    def _of_kind(self, kind: str, flat: FlatSchema, name: str, path: tuple[str, ...]) -> Iterator[JsonValue]:
        match kind:
            case "string":
                return _strings(flat, name)
            case "integer":
                return (int(number) for number in _numbers(flat, name))
            case "number":
                return _numbers(flat, name)
            case "boolean":
                return iter((True, False))
            case "array":
                return self._arrays(flat, name, path)
            case "object":
                return self._objects(flat, path)
            case _:
                return iter((None,))

    def _arrays(self, flat: FlatSchema, name: str, path: tuple[str, ...]) -> Iterator[JsonValue]:
        first_items = cast("Sequence[Schema]", flat.get("prefixItems", ()))
        # A single item makes a useful example; an empty array follows, in case no item is valid.
        least = flat.get("minItems", 0)
        for length in (max(least, len(first_items), 1), least, len(first_items), 2, 3):
            streams = [self.values(schema, name, path) for schema in first_items[:length]]
            rest = self.values(flat.get("items", True), name, path)
            if flat.get("uniqueItems"):
                yield from self._unique_array([*streams, *[rest] * (length - len(streams))])
            else:
                values: list[JsonValue] = [next(stream, _NOTHING) for stream in streams]
                missing_count = length - len(values)
                # Different items where the schema allows them: Claude Code refuses options with equal labels.
                items = [*islice(rest, min(missing_count, _NEIGHBOURS))] or [_NOTHING]
                values += islice(cycle(items), missing_count)
                if _NOTHING not in values:
                    yield values

    def _unique_array(self, streams: list[Iterator[JsonValue]]) -> Iterator[JsonValue]:
        values: list[JsonValue] = []
        is_taken = self._validator.predicate({"enum": values})
        for stream in streams:
            new_value = next((value for value in stream if not is_taken(value)), _NOTHING)
            if new_value is _NOTHING:
                return
            values.append(new_value)
        yield values

    def _objects(self, flat: FlatSchema, path: tuple[str, ...]) -> Iterator[JsonValue]:
        streams = {name: self._property(flat, name, path) for name in flat.get("required", ())}
        smallest: dict[str, JsonValue] = {name: next(stream, _NOTHING) for name, stream in streams.items()}
        if _NOTHING in smallest.values():
            return
        yield dict(smallest)
        yield from self._with_more_properties(flat, smallest, path)
        # For arrays, which may need different objects: at first all properties vary together, then each alone.
        variants = {name: [*islice(stream, _VARIANTS)] for name, stream in streams.items()}
        for number in range(_VARIANTS):
            other_values = {name: values[number] for name, values in variants.items() if number < len(values)}
            yield {**smallest, **other_values}
        for name, stream in streams.items():
            yield from ({**smallest, name: value} for value in chain(variants[name], stream))

    def _with_more_properties(
        self, flat: FlatSchema, smallest: dict[str, JsonValue], path: tuple[str, ...]
    ) -> Iterator[JsonValue]:
        """Yield an object with the minimum number of properties, which may be `smallest` again."""
        larger = dict(smallest)
        least = flat.get("minProperties", 0)
        patterns: list[str] = list(flat.get("patternProperties", ()))
        names = [*flat.get("properties", ()), *(text_for(pattern) or "" for pattern in patterns)]
        for name in islice(chain(names, (f"key{number}" for number in count(1))), len(names) + least):
            if len(larger) >= least:
                break
            value = next(self._property(flat, name, path), _NOTHING) if name and name not in larger else _NOTHING
            if value is not _NOTHING:
                larger[name] = value
        yield larger

    def _property(self, flat: FlatSchema, name: str, path: tuple[str, ...]) -> Iterator[JsonValue]:
        return self.values({"allOf": property_schemas(flat, name)}, name, path)


# The end of an iterator, distinct from null.
_NOTHING: Any = object()


def _kinds(flat: FlatSchema) -> list[str]:
    """Return the types to try, null last; without `type`, the types that the other keywords suggest come first."""
    types = flat.get("type")
    if types is None:
        likely = [kind for kind, keywords in _HINTS.items() if any(keyword in flat for keyword in keywords)]
        return [*likely, *(kind for kind in _TYPES if kind not in likely)]
    return sorted([types] if isinstance(types, str) else types, key=lambda kind: kind == "null")


def _strings(flat: FlatSchema, name: str) -> Iterator[JsonValue]:
    least, most = flat.get("minLength", 0), flat.get("maxLength")
    words = [TEXT_BY_FORMAT.get(flat.get("format", "")), word_for(name), name, "example", "a", "1", "A", "abc-123"]
    if "pattern" in flat:
        words.insert(1, text_for(flat["pattern"]))
    more_words = (f"{word_for(name)} {number}" for number in count(2))
    for word in chain(words, map(str, range(10)), more_words):
        if word is not None:
            yield word
            yield (word * math.ceil(least / max(1, len(word))) if len(word) < least else word)[:most]


def _numbers(flat: FlatSchema, name: str) -> Iterator[int | float]:
    step: float = flat.get("multipleOf", 1)
    lows = [flat[key] for key in ("minimum", "exclusiveMinimum") if key in flat]
    highs = [flat[key] for key in ("maximum", "exclusiveMaximum") if key in flat]
    yield from (number_for(name), 1, 0)
    for low in lows:
        yield from (step * (math.ceil(low / step) + more) for more in range(_NEIGHBOURS))
    for high in highs:
        yield from (step * (math.floor(high / step) - less) for less in range(_NEIGHBOURS))
    for low in lows:
        yield from ((low + high) / 2 for high in highs)
    yield from (*lows, *highs, 0.5)
    yield from (step * factor for factor in range(-_NEIGHBOURS, _MAX_PROPOSALS))
