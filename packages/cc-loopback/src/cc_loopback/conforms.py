"""Whether a value fits a JSON Schema: jsonschema's judgement, lenient about what it cannot judge.

Every schema counts as one of the draft 2020-12, whatever its `$schema` says. It explains nothing.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import Any, TypeAlias, cast

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import UnknownType, ValidationError
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from .types import JsonValue

Schema: TypeAlias = Mapping[str, Any] | bool

_Keyword: TypeAlias = Callable[[Any, Any, Any, Any], Iterable[ValidationError]]

# A number where a name should be, and the like: `referencing` does not say it in an error of its own.
_POINTS_NOWHERE = (Unresolvable, ValueError, TypeError)

# The schemas with references that are being followed, each with the value it is followed for.
_followed: ContextVar[frozenset[tuple[int, int]]] = ContextVar("followed", default=frozenset())


class Judge:
    """Judges values by the schemas of one document."""

    def __init__(self, root: Schema) -> None:
        document = DRAFT202012.create_resource(_without_dialect(root))
        self._resolver: Any = Registry[Any]().resolver_with_root(document)
        # Without a registry, jsonschema would ask the network for references to other documents.
        self._validator: Any = _Validator(document.contents, registry=Registry[Any]())

    def resolve(self, reference: str) -> Schema | None:
        """Return what a reference within the document points at, or None."""
        try:
            return self._resolver.lookup(reference).contents
        except _POINTS_NOWHERE:
            return None

    def judgement(self, schema: Schema) -> Callable[[JsonValue], bool]:
        """Return the function that tells whether a value fits `schema`, which is of the document."""
        return self._validator.evolve(schema=_without_dialect(schema)).is_valid

    def conforms(self, value: JsonValue, schema: Schema) -> bool:
        """Whether `value` fits `schema`, which is of the document."""
        return self.judgement(schema)(value)


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern is found in a text; one that is no Python pattern cannot be checked, and passes."""
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return True


def property_schemas(schema: Mapping[str, Any], name: str) -> list[Schema]:
    """Return all schemas that an object's schema has for one of its properties."""
    found: list[Schema] = []
    if name in schema.get("properties", {}):
        found.append(schema["properties"][name])
    found += [part for pattern, part in schema.get("patternProperties", {}).items() if matches(pattern, name)]
    return found or [schema.get("additionalProperties", True)]


def _without_dialect(schema: Schema) -> Schema:
    """Return the schema without `$schema`, by which jsonschema would choose another class than this module's."""
    if isinstance(schema, bool) or "$schema" not in schema:
        return schema
    return {key: value for key, value in schema.items() if key != "$schema"}


def _first(keyword: str, *arguments: Any) -> list[ValidationError]:
    problem = next(iter(Draft202012Validator.VALIDATORS[keyword](*arguments) or ()), None)
    return [] if problem is None else [problem]


def _passing(keyword: str, problem: type[Exception]) -> _Keyword:
    """Return the judgement by a keyword, where a value passes that cannot be judged."""

    def judge(*arguments: Any) -> list[ValidationError]:
        try:
            return _first(keyword, *arguments)
        except problem:
            return []

    return judge


def _type(validator: Any, types: Any, instance: Any, schema: Any) -> list[ValidationError]:
    try:
        return _first("type", validator, types, instance, schema)
    except UnknownType as error:
        return [ValidationError(str(error))]


def _following(keyword: str) -> _Keyword:
    """Return the judgement by a keyword that refers; a circle ends where it comes back to the same value."""

    def judge(validator: Any, reference: Any, instance: Any, schema: Any) -> list[ValidationError]:
        followed = _followed.get()
        step = (id(schema), id(instance))
        if step in followed:
            return []
        token = _followed.set(followed | {step})
        try:
            return _first(keyword, validator, reference, instance, schema)
        except _POINTS_NOWHERE as error:
            return [ValidationError(str(error))]
        finally:
            _followed.reset(token)

    return judge


_PATTERNS = ("pattern", "patternProperties", "additionalProperties", "unevaluatedProperties")
_Validator: Any = cast("Any", validators).extend(
    Draft202012Validator,
    {
        "type": _type,
        **{keyword: _following(keyword) for keyword in ("$ref", "$dynamicRef")},
        **{keyword: _passing(keyword, re.error) for keyword in _PATTERNS},
    },
)
