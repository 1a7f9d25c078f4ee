"""Validation of values against a JSON Schema, lenient about keywords that jsonschema cannot check.

Every schema is read as draft 2020-12, whatever `$schema` says.
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

from ..api.types import JsonValue

Schema: TypeAlias = Mapping[str, Any] | bool

_Keyword: TypeAlias = Callable[[Any, Any, Any, Any], Iterable[ValidationError]]

# Some malformed references, such as a number in place of a name, make `referencing` raise built-in errors.
_UNRESOLVABLE = (Unresolvable, ValueError, TypeError)

# Schemas whose reference is under check, each with the value to validate, by `id`.
_active_checks: ContextVar[frozenset[tuple[int, int]]] = ContextVar("active_checks", default=frozenset())


class SchemaValidator:
    """Validator for the schemas in one document."""

    def __init__(self, root: Schema) -> None:
        document = DRAFT202012.create_resource(_without_dialect(root))
        self._resolver: Any = Registry[Any]().resolver_with_root(document)
        # Without a registry, jsonschema would fetch references to other documents from the network.
        self._validator: Any = _Validator(document.contents, registry=Registry[Any]())

    def resolve(self, reference: str) -> Schema | None:
        """Return the schema that a reference within the document names, or None."""
        try:
            return self._resolver.lookup(reference).contents
        except _UNRESOLVABLE:
            return None

    def predicate(self, schema: Schema) -> Callable[[JsonValue], bool]:
        """Return a function that tests if a value is valid for `schema`, a part of the document."""
        return self._validator.evolve(schema=_without_dialect(schema)).is_valid


def matches(pattern: str, text: str) -> bool:
    """Return true if a text matches a pattern. A pattern that is invalid in Python cannot be checked, and passes."""
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return True


def property_schemas(schema: Mapping[str, Any], name: str) -> list[Schema]:
    """Return all schemas in an object schema that apply to a property."""
    properties = schema.get("properties", {})
    schemas: list[Schema] = [properties[name]] if name in properties else []
    schemas += [part for pattern, part in schema.get("patternProperties", {}).items() if matches(pattern, name)]
    return schemas or [schema.get("additionalProperties", True)]


def _without_dialect(schema: Schema) -> Schema:
    """Return the schema without `$schema`, which would make jsonschema choose another validator class."""
    if isinstance(schema, bool) or "$schema" not in schema:
        return schema
    return {key: value for key, value in schema.items() if key != "$schema"}


def _first_error(keyword: str, *arguments: Any) -> list[ValidationError]:
    problem = next(iter(Draft202012Validator.VALIDATORS[keyword](*arguments) or ()), None)
    return [] if problem is None else [problem]


def _guarded(keyword: str, problems: tuple[type[Exception], ...], *, passes: bool) -> _Keyword:
    """Return a keyword check that passes or refuses a value if jsonschema's check raises one of the problems."""

    def check(*arguments: Any) -> list[ValidationError]:
        try:
            return _first_error(keyword, *arguments)
        except problems as error:
            return [] if passes else [ValidationError(str(error))]

    return check


def _cycle_safe(keyword: str) -> _Keyword:
    """Return the check for a reference keyword; a cycle ends when it comes back to the same value."""
    follow = _guarded(keyword, _UNRESOLVABLE, passes=False)

    def check(validator: Any, reference: Any, instance: Any, schema: Any) -> Iterable[ValidationError]:
        active, step = _active_checks.get(), (id(schema), id(instance))
        if step in active:
            return []
        token = _active_checks.set(active | {step})
        try:
            return follow(validator, reference, instance, schema)
        finally:
            _active_checks.reset(token)

    return check


_PATTERNS = ("pattern", "patternProperties", "additionalProperties", "unevaluatedProperties")
_Validator: Any = cast("Any", validators).extend(
    Draft202012Validator,
    {
        "type": _guarded("type", (UnknownType,), passes=False),
        **{keyword: _cycle_safe(keyword) for keyword in ("$ref", "$dynamicRef")},
        **{keyword: _guarded(keyword, (re.error,), passes=True) for keyword in _PATTERNS},
    },
)
