"""Flattening of schemas: `$ref`, `allOf`, `anyOf` and `oneOf` are merged, with a flat schema for each choice.

The merge may lose constraints that two parts set with the same keyword, so a value for a flat schema must be validated
against the original schema.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from .conforms import Schema, SchemaValidator

FlatSchema: TypeAlias = dict[str, Any]

_APPLICATORS = frozenset({"$ref", "allOf", "anyOf", "oneOf"})
_MERGED_BY: dict[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), min),
    "required": lambda a, b: list(dict.fromkeys([*a, *b])),
    "enum": lambda a, b: [value for value in a if value in b],
    "type": lambda a, b: _common_types(_listed(a), _listed(b)),
    **dict.fromkeys(
        ("properties", "patternProperties"),
        lambda a, b: {**a, **b, **{name: {"allOf": [a[name], b[name]]} for name in a if name in b}},
    ),
    **dict.fromkeys(("items", "additionalProperties"), lambda a, b: {"allOf": [a, b]}),
    "uniqueItems": lambda a, b: a or b,
}


class Flattener:
    """Flattener for the schemas in a document. It follows a reference at most `repeats` times on a path to a value."""

    def __init__(self, validator: SchemaValidator, repeats: int) -> None:
        self._validator = validator
        self._repeats = repeats

    def flat(self, schema: Schema, path: tuple[str, ...]) -> Iterator[tuple[FlatSchema, tuple[str, ...]]]:
        """Yield each flat form of `schema`, and `path` with the references that led to it.

        A reference that was followed too often yields nothing, so a recursive schema uses another alternative, or omits
        an optional part.
        """
        if isinstance(schema, bool):
            if schema:
                yield {}, path
        elif list(schema) == ["$ref"]:
            yield from self._follow(schema["$ref"], path)
        else:
            base = {key: value for key, value in schema.items() if key not in _APPLICATORS}
            yield from self._combine(base, _alternatives(schema), path)

    def _follow(self, reference: str, path: tuple[str, ...]) -> Iterator[tuple[FlatSchema, tuple[str, ...]]]:
        target = self._validator.resolve(reference)
        if target is not None and path.count(reference) < self._repeats:
            yield from self.flat(target, (*path, reference))

    def _combine(
        self, base: FlatSchema, choices: Sequence[Sequence[Schema]], path: tuple[str, ...]
    ) -> Iterator[tuple[FlatSchema, tuple[str, ...]]]:
        if not choices:
            yield base, path
            return
        for choice in choices[0]:
            for part, part_path in self.flat(choice, path):
                yield from self._combine(merge(base, part), choices[1:], part_path)


def merge(a: FlatSchema, b: FlatSchema) -> FlatSchema:
    """Return a flat schema with the constraints from both, as far as single keywords can express them."""
    common = {key: _MERGED_BY[key](a[key], b[key]) for key in b if key in a and key in _MERGED_BY}
    return {**a, **b, **common}


def _alternatives(schema: Mapping[str, Any]) -> list[list[Schema]]:
    """Return lists of schemas; a value must be valid for a schema in each list."""
    choices: list[list[Schema]] = [[part] for part in schema.get("allOf", ())]
    if "$ref" in schema:
        choices.append([{"$ref": schema["$ref"]}])
    # Null last: an example should contain a value if it can.
    return choices + [sorted(schema[key], key=_is_null) for key in ("anyOf", "oneOf") if key in schema]


def _is_null(schema: Schema) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") == "null"


def _listed(kinds: object) -> list[str]:
    return [kinds] if isinstance(kinds, str) else list(cast("Sequence[str]", kinds))


def _common_types(a: list[str], b: list[str]) -> list[str]:
    common = [kind for kind in a if kind in b]
    if "integer" not in common and {"integer", "number"} <= {*a, *b}:
        common.append("integer")
    return common
