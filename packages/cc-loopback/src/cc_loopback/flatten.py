"""Schemas without `$ref`, `allOf`, `anyOf` and `oneOf`: every way to choose among the alternatives, merged into one.

The merge may lose what two parts say about the same thing; whoever makes a value from a flat schema checks it against
the whole one. No values are made here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from .conforms import Judge, Schema

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
    """Flattens the schemas of one document.

    Args:
        judge: The judge of the document, which knows what references point at.
        repeats: How often one reference may be followed on the way from the root to a value.
    """

    def __init__(self, judge: Judge, repeats: int) -> None:
        self._judge = judge
        self._repeats = repeats

    def flat(self, schema: Schema, path: tuple[str, ...]) -> Iterator[tuple[FlatSchema, tuple[str, ...]]]:
        """Yield each flat form of `schema`, and `path` with the references that led there.

        A reference that was followed too often already yields nothing, so that a recursive schema takes another
        alternative, or leaves out what is optional.
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
        target = self._judge.resolve(reference)
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
    """Return a flat schema that asks for what both ask, as far as one keyword can say it."""
    merged = dict(left)
    for key, value in right.items():
        known = key in left and key in _MERGED_BY
        merged[key] = _MERGED_BY[key](left[key], value) if known else value
    return merged


def _alternatives(schema: Mapping[str, Any]) -> list[list[Schema]]:
    """Return lists of schemas; a value must fit one of each list."""
    found: list[list[Schema]] = [[part] for part in schema.get("allOf", ())]
    if "$ref" in schema:
        found.append([{"$ref": schema["$ref"]}])
    # Null last: where something can be said, a demo shall say it.
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
