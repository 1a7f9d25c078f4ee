"""Validation of values against a JSON Schema with jsonschema, lenient about keywords that cannot be checked.

Every schema is treated as draft 2020-12, regardless of its `$schema`. No error messages are produced.
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

# For some malformed references, such as a number in place of a name, `referencing` raises no error class of its own.
_UNRESOLVABLE = (Unresolvable, ValueError, TypeError)

# Schemas whose references are being followed, each with the value to validate.
_followed: ContextVar[frozenset[tuple[int, int]]] = ContextVar("followed", default=frozenset())


class SchemaValidator:
    """Validator of values against the schemas of one document."""

    def __init__(self, root: Schema) -> None:
        document = DRAFT202012.create_resource(_without_dialect(root))
        self._resolver: Any = Registry[Any]().resolver_with_root(document)
        # Without a registry, jsonschema would fetch references to other documents from the network.
        self._validator: Any = _Validator(document.contents, registry=Registry[Any]())

    def resolve(self, reference: str) -> Schema | None:
        """Return the target of a reference within the document, or None."""
        try:
            return self._resolver.lookup(reference).contents
        except _UNRESOLVABLE:
            return None

    def predicate(self, schema: Schema) -> Callable[[JsonValue], bool]:
        """Return a function that tests whether a value is valid for `schema`, a part of the document."""
        return self._validator.evolve(schema=_without_dialect(schema)).is_valid


def matches(pattern: str, text: str) -> bool:
    """Return whether a text contains a match of a pattern. An invalid Python pattern cannot be checked, and passes."""
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return True


def property_schemas(schema: Mapping[str, Any], name: str) -> list[Schema]:
    """Return all schemas in an object's schema that apply to one property."""
    found: list[Schema] = []
    if name in schema.get("properties", {}):
        found.append(schema["properties"][name])
    found += [part for pattern, part in schema.get("patternProperties", {}).items() if matches(pattern, name)]
    return found or [schema.get("additionalProperties", True)]


def _without_dialect(schema: Schema) -> Schema:
    """Return the schema without `$schema`, which would make jsonschema choose another validator class."""
    if isinstance(schema, bool) or "$schema" not in schema:
        return schema
    return {key: value for key, value in schema.items() if key != "$schema"}


def _first(keyword: str, *arguments: Any) -> list[ValidationError]:
    problem = next(iter(Draft202012Validator.VALIDATORS[keyword](*arguments) or ()), None)
    return [] if problem is None else [problem]


def _lenient(keyword: str, problem: type[Exception]) -> _Keyword:
    """Return the check of a keyword that passes values which cannot be checked."""

    def check(*arguments: Any) -> list[ValidationError]:
        try:
            return _first(keyword, *arguments)
        except problem:
            return []

    return check


def _type(validator: Any, types: Any, instance: Any, schema: Any) -> list[ValidationError]:
    try:
        return _first("type", validator, types, instance, schema)
    except UnknownType as error:
        return [ValidationError(str(error))]


def _cycle_safe(keyword: str) -> _Keyword:
    """Return the check of a reference keyword; a cycle ends when it returns to the same value."""

    def check(validator: Any, reference: Any, instance: Any, schema: Any) -> list[ValidationError]:
        followed = _followed.get()
        step = (id(schema), id(instance))
        if step in followed:
            return []
        token = _followed.set(followed | {step})
        try:
            return _first(keyword, validator, reference, instance, schema)
        except _UNRESOLVABLE as error:
            return [ValidationError(str(error))]
        finally:
            _followed.reset(token)

    return check


_PATTERNS = ("pattern", "patternProperties", "additionalProperties", "unevaluatedProperties")
_Validator: Any = cast("Any", validators).extend(
    Draft202012Validator,
    {
        "type": _type,
        **{keyword: _cycle_safe(keyword) for keyword in ("$ref", "$dynamicRef")},
        **{keyword: _lenient(keyword, re.error) for keyword in _PATTERNS},
    },
)
