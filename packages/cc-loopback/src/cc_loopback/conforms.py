"""Whether a value fits a JSON Schema.

Covers the keywords that `schema.py` can make examples for, and ignores others. It judges values and explains nothing.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from .types import JsonValue

Schema: TypeAlias = Mapping[str, Any] | bool

_TYPES: dict[str, Callable[[JsonValue], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: is_number(value) and (isinstance(value, int) or cast("float", value).is_integer()),
    "number": lambda value: is_number(value),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def is_number(value: object) -> bool:
    """Whether JSON calls the value a number; Python's booleans are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def same(left: JsonValue, right: JsonValue) -> bool:
    """Whether two values are equal in JSON, where `1` is `1.0` and never `true`."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return left == right


def resolve(reference: str, root: Schema) -> Schema | None:
    """Return what a reference within the document points at, or None."""
    if not reference.startswith("#"):
        return None
    found: Any = root
    for token in reference.removeprefix("#").split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Sequence) and key.isdecimal() and int(key) < len(cast("Sequence[Any]", found)):
            found = cast("Sequence[Any]", found)[int(key)]
        elif isinstance(found, Mapping) and key in found:
            found = cast("Mapping[str, Any]", found)[key]
        else:
            return None
    return cast("Schema", found)


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern is found in a text; one that is no Python pattern cannot be checked, and passes."""
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return True


class Judge:
    """Judges values by the schemas of one document."""

    def __init__(self, root: Schema) -> None:
        self._root = root

    def conforms(self, value: JsonValue, schema: Schema, references: frozenset[str] = frozenset()) -> bool:
        """Whether `value` fits; `references` are those followed for this same value, to end a circle of them."""
        if isinstance(schema, bool):
            return schema
        return (
            _fits_type(value, schema)
            and _fits_choice(value, schema)
            and self._fits_parts(value, schema, references)
            and self._fits_kind(value, schema)
        )

    def _fits_parts(self, value: JsonValue, schema: Mapping[str, Any], references: frozenset[str]) -> bool:
        def fits(part: Schema) -> bool:
            return self.conforms(value, part, references)

        reference = schema.get("$ref")
        if reference is not None and reference not in references:
            target = resolve(reference, self._root)
            if target is None or not self.conforms(value, target, references | {reference}):
                return False
        return (
            all(map(fits, schema.get("allOf", ())))
            and ("anyOf" not in schema or any(map(fits, schema["anyOf"])))
            and ("oneOf" not in schema or sum(map(fits, schema["oneOf"])) == 1)
            and ("not" not in schema or not fits(schema["not"]))
        )

    def _fits_kind(self, value: JsonValue, schema: Mapping[str, Any]) -> bool:
        if isinstance(value, str):
            return _within(len(value), schema, "minLength", "maxLength") and (
                "pattern" not in schema or matches(schema["pattern"], value)
            )
        if isinstance(value, list):
            return self._fits_array(value, schema)
        if isinstance(value, dict):
            return self._fits_object(value, schema)
        return _fits_number(cast("float", value), schema) if is_number(value) else True

    def _fits_array(self, value: list[JsonValue], schema: Mapping[str, Any]) -> bool:
        first = schema.get("prefixItems", [])
        schemas = [*first, *[schema.get("items", True)] * (len(value) - len(first))]
        return (
            _within(len(value), schema, "minItems", "maxItems")
            and all(map(self.conforms, value, schemas))
            and not (schema.get("uniqueItems") and _has_double(value))
        )

    def _fits_object(self, value: dict[str, JsonValue], schema: Mapping[str, Any]) -> bool:
        return (
            _within(len(value), schema, "minProperties", "maxProperties")
            and all(name in value for name in schema.get("required", ()))
            and all(
                self.conforms(item, part) for name, item in value.items() for part in property_schemas(schema, name)
            )
        )


def property_schemas(schema: Mapping[str, Any], name: str) -> list[Schema]:
    """Return all schemas that an object's schema has for one of its properties."""
    found: list[Schema] = []
    if name in schema.get("properties", {}):
        found.append(schema["properties"][name])
    found += [part for pattern, part in schema.get("patternProperties", {}).items() if matches(pattern, name)]
    return found or [schema.get("additionalProperties", True)]


def _fits_type(value: JsonValue, schema: Mapping[str, Any]) -> bool:
    kinds = schema.get("type")
    if kinds is None:
        return True
    names = [kinds] if isinstance(kinds, str) else kinds
    return any(name in _TYPES and _TYPES[name](value) for name in names)


def _fits_choice(value: JsonValue, schema: Mapping[str, Any]) -> bool:
    if "const" in schema and not same(value, schema["const"]):
        return False
    return "enum" not in schema or any(same(value, choice) for choice in schema["enum"])


def _fits_number(value: float, schema: Mapping[str, Any]) -> bool:
    step = schema.get("multipleOf")
    return (
        _within(value, schema, "minimum", "maximum")
        and ("exclusiveMinimum" not in schema or value > schema["exclusiveMinimum"])
        and ("exclusiveMaximum" not in schema or value < schema["exclusiveMaximum"])
        and (step is None or (value / step).is_integer())
    )


def _within(size: float, schema: Mapping[str, Any], least: str, most: str) -> bool:
    return schema.get(least, size) <= size <= schema.get(most, size)


def _has_double(values: list[JsonValue]) -> bool:
    return any(same(value, other) for index, value in enumerate(values) for other in values[:index])
