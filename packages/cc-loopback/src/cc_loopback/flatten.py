"""Flattening of schemas: `$ref`, `allOf`, `anyOf` and `oneOf` are merged, once for each choice of alternatives.

The merge may lose constraints that two parts set with the same keyword, so a value made from a flat schema must be
validated against the original one. No values are made here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from .conforms import Schema, SchemaValidator

FlatSchema: TypeAlias = dict[str, Any]

_APPLICATORS = frozenset({"$ref", "allOf", "anyOf", "oneOf"})
_MERGED_BY: dict[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), min),
    "required": lambda left, right: list(dict.fromkeys([*left, *right])),
    "enum": lambda left, right: [value for value in left if value in right],
    "type": lambda left, right: _common_types(_listed(left), _listed(right)),
    "properties": lambda left, right: _merge_named(left, right),
    "patternProperties": lambda left, right: _merge_named(left, right),
    **dict.fromkeys(("items", "additionalProperties"), lambda left, right: {"allOf": [left, right]}),
    "uniqueItems": lambda left, right: left or right,
}


class Flattener:
    """Flattener of the schemas of one document.

    Args:
        validator: The validator of the document, which resolves references.
        repeats: Maximum number of times that one reference is followed on the path from the root to a value.
    """

    def __init__(self, validator: SchemaValidator, repeats: int) -> None:
        self._validator = validator
        self._repeats = repeats

    def flat(self, schema: Schema, path: tuple[str, ...]) -> Iterator[tuple[FlatSchema, tuple[str, ...]]]:
        """Yield each flat form of `schema`, with `path` extended by the references that were followed.

        A reference that was followed too often yields nothing, so that a recursive schema uses another alternative, or
        omits an optional part.
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
        for chosen in choices[0]:
            for part, part_path in self.flat(chosen, path):
                yield from self._combine(merge(base, part), choices[1:], part_path)


def merge(left: FlatSchema, right: FlatSchema) -> FlatSchema:
    """Return a flat schema with the constraints of both, as far as single keywords can express them."""
    merged = dict(left)
    for key, value in right.items():
        known = key in left and key in _MERGED_BY
        merged[key] = _MERGED_BY[key](left[key], value) if known else value
    return merged


def _alternatives(schema: Mapping[str, Any]) -> list[list[Schema]]:
    """Return lists of schemas; a value must be valid for one schema of each list."""
    found: list[list[Schema]] = [[part] for part in schema.get("allOf", ())]
    if "$ref" in schema:
        found.append([{"$ref": schema["$ref"]}])
    # Null last: an example should contain a value if it can.
    found += [sorted(schema[key], key=_is_null) for key in ("anyOf", "oneOf") if key in schema]
    return found


def _is_null(schema: Schema) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") == "null"


def _merge_named(left: Mapping[str, Schema], right: Mapping[str, Schema]) -> dict[str, Schema]:
    both: dict[str, Schema] = {name: {"allOf": [left[name], right[name]]} for name in left if name in right}
    return {**left, **right, **both}


def _listed(kinds: object) -> list[str]:
    return [kinds] if isinstance(kinds, str) else list(cast("Sequence[str]", kinds))


def _common_types(left: list[str], right: list[str]) -> list[str]:
    common = [kind for kind in left if kind in right]
    if "integer" not in common and {"integer", "number"} <= {*left, *right}:
        common.append("integer")
    return common
