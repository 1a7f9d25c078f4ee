"""Examples for JSON Schemas, validated by jsonschema with format checks."""

import re
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from cc_loopback import SchemaError, example
from cc_loopback.schemas.pattern import text_for

Schemas: TypeAlias = st.SearchStrategy[Any]

NAMES = ["city", "count", "user_email", "x"]
PATTERNS = [r"^\d{4}-\d{2}$", r"^[A-Z]{2,3}-\d+$", r"^(foo|bar)$", r"[^a]b?", r"^\w+@\w+\.com$", "^a.c*$"]

bounds = st.integers(-20, 20)
steps = st.integers(1, 9)


def an(**fields: st.SearchStrategy[Any]) -> Schemas:
    """A schema with these keywords."""
    return st.fixed_dictionaries(fields)


def between(kind: str, least: str, most: str, low: int, high: int) -> Schemas:
    """A schema with two limits that allow a value."""
    pairs = st.tuples(st.integers(low, high), st.integers(low, high)).map(sorted)
    return pairs.map(lambda pair: {"type": kind, least: pair[0], most: pair[1]})


numbers = st.one_of(
    between("integer", "minimum", "maximum", -20, 20),
    between("number", "minimum", "maximum", -20, 20),
    bounds.map(lambda low: {"type": "number", "exclusiveMinimum": low, "exclusiveMaximum": low + 1}),
    an(type=st.just("integer"), multipleOf=steps, minimum=bounds),
    an(type=st.just("number"), multipleOf=steps, exclusiveMaximum=bounds),
)
strings = st.one_of(
    between("string", "minLength", "maxLength", 0, 12), an(type=st.just("string"), pattern=st.sampled_from(PATTERNS))
)
values: st.SearchStrategy[Any] = st.sampled_from([None, True, False, -3, 0, 1, 2, 1.5, "a", "b"])
plain: Schemas = st.one_of(
    numbers,
    strings,
    st.sampled_from([True, {"type": "boolean"}, {"type": ["null", "string"]}]),
    an(enum=st.lists(values, min_size=1, max_size=3)),
    an(const=values),
)


def objects(inner: Schemas) -> Schemas:
    def require(schema: dict[str, Any]) -> dict[str, Any]:
        # A closed object can only have its listed properties.
        return {**schema, "required": sorted(schema["properties"])[:2]}

    properties = st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    return an(type=st.just("object"), properties=properties, additionalProperties=st.booleans()).map(require)


def nested(inner: Schemas) -> Schemas:
    array, sizes = st.just("array"), st.integers(0, 3)
    integers: Schemas = st.just({"type": "integer"})
    other = inner.filter(lambda schema: schema is not True)
    return st.one_of(
        objects(inner),
        an(type=array, items=inner, minItems=sizes),
        an(type=array, items=integers, minItems=sizes, uniqueItems=st.just(True)),
        an(type=array, items=inner, prefixItems=st.lists(inner, max_size=3)),
        an(type=st.just("object"), minProperties=st.just(2), additionalProperties=inner),
        an(anyOf=st.lists(inner, min_size=1, max_size=3)),
        an(oneOf=st.tuples(other, st.just({"const": "no other"})).map(list)),
        an(allOf=st.tuples(inner, st.just({"description": "the same"})).map(list)),
    )


satisfiable = st.recursive(plain, nested, max_leaves=8)
both = st.tuples(satisfiable, satisfiable).map(list)
limits = {name: st.integers(0, 4) for name in ("minItems", "maxLength", "maximum", "minProperties")}
wild: Schemas = st.fixed_dictionaries({"allOf": both}, optional=limits)


def is_valid(value: Any, schema: Any) -> bool:
    validator: Any = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
    return validator.is_valid(value)


@given(satisfiable)
@settings(deadline=None)
def test_example_of_a_schema_is_valid(schema: Any) -> None:
    """LOOP-21, LOOP-22."""
    assert is_valid(example(schema), schema)


def test_an_array_of_unique_items_gets_different_objects() -> None:
    schema = {"type": "array", "items": PERSON, "minItems": 4, "uniqueItems": True}
    assert is_valid(example(schema), schema)


@given(wild)
@settings(deadline=None)
def test_example_of_contradicting_schemas_is_valid_or_refused(schema: Any) -> None:
    try:
        value = example(schema)
    except SchemaError:
        return
    assert is_valid(value, schema)


NAMED = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
}
NODE = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "parent": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
        "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
    },
    "required": ["name", "parent", "children"],
}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (True, "text"),
        ({}, "text"),
        ({"type": "string", "default": "mine"}, "mine"),
        ({"type": "string", "minLength": 10, "maxLength": 10}, "texttextte"),
        ({"type": "integer", "default": "wrong", "examples": [7]}, 7),
        ({"type": "null"}, None),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, 1),
        (
            {"properties": {"city": {"type": "string"}, "note": {"type": "string"}}, "required": ["city"]},
            {"city": "Paris"},
        ),
        ({"required": ["userEmail"]}, {"userEmail": "ada@example.com"}),
        ({"required": ["zzz"], "properties": {"zzz": {"type": "string"}}}, {"zzz": "zzz"}),
        ({"type": "object", "properties": {"age": {"type": "number"}}, "required": ["age"]}, {"age": 36}),
        ({"type": "array", "items": {"type": "boolean"}}, [True]),
        ({"type": "array", "maxItems": 0}, []),
        ({"type": "array", "items": {"enum": [1, 2, 3]}, "minItems": 3, "uniqueItems": True}, [1, 2, 3]),
        ({"not": {"type": "string"}, "type": ["string", "integer"]}, 1),
        ({"minimum": 3}, 3),
        ({"minProperties": 1, "patternProperties": {"^n[0-9]$": {"type": "integer"}}, "type": "object"}, {"n0": 1}),
        ({"minProperties": 1, "properties": {"a": False, "b": {"type": "integer"}}, "type": "object"}, {"b": 1}),
        ({"allOf": [{"type": "integer"}, {"type": "number", "minimum": 2.5}]}, 3),
        ({"oneOf": [{"type": "number"}, {"type": "integer"}]}, 0.5),
        (
            {"prefixItems": [{"$ref": "#/$defs/a~1b"}, {"$ref": "#/prefixItems/0"}], "$defs": {"a/b": {"const": 5}}},
            [5, 5],
        ),
        ({"$ref": "#/$defs/Node", "$defs": {"Node": NODE}}, {"name": "Ada", "parent": None, "children": []}),
        (
            {
                "allOf": [
                    {"$ref": "#/$defs/N"},
                    {"properties": {"other": {"$ref": "#/$defs/N"}}, "required": ["other"]},
                ],
                "$defs": {"N": NAMED},
            },
            {"name": "Ada", "other": {"name": "Ada"}},
        ),
    ],
)
def test_example_has_plausible_values(schema: Any, expected: Any) -> None:
    assert example(schema) == expected
    assert is_valid(expected, schema)


@pytest.mark.parametrize(
    "name", ["date", "date-time", "time", "email", "uri", "uuid", "ipv4", "ipv6", "hostname", "duration", "regex"]
)
def test_formats_get_a_text_of_their_format(name: str) -> None:
    schema = {**NAMED, "properties": {"name": {"type": "string", "format": name}}}
    assert is_valid(example(schema), schema)
    assert example(schema) != {"name": "Ada"}


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"type": "integer", "minimum": 3, "maximum": 2},
        {"enum": []},
        {"$ref": "#"},
        {"$ref": "#/$defs/absent"},
        {"$ref": "#/enum/one", "enum": [1]},
        {"$ref": "https://example.com/other"},
        {"type": "string", "pattern": "^(?=x)y$"},
        {"type": "unknown"},
        {"type": "array", "items": {"type": "boolean"}, "minItems": 3, "uniqueItems": True},
        {"type": "array", "items": {"enum": [[1], [1.0]]}, "minItems": 2, "uniqueItems": True},
        {
            "$ref": "#/$defs/Endless",
            "$defs": {
                "Endless": {"required": ["next"], "properties": {"next": {"$ref": "#/$defs/Endless"}}, "type": "object"}
            },
        },
    ],
)
def test_schema_without_an_example_is_refused(schema: Any) -> None:
    with pytest.raises(SchemaError, match="no example found"):
        example(schema)


def test_hopeless_search_ends() -> None:
    schema: dict[str, Any] = {"type": "integer", "minimum": 3, "maximum": 2}
    for _ in range(8):
        pair = {"type": "object", "properties": {"a": schema, "b": schema}, "required": ["a", "b"]}
        schema = {"anyOf": [pair, {"type": "array", "items": schema, "minItems": 2}]}
    with pytest.raises(SchemaError):
        example(schema)


# As `#/$defs/a`, a circle for the same value, which then allows every value.
CIRCLE = {"anyOf": [{"$ref": "#/$defs/a"}, {"const": 4}]}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"$ref": "#/$defs/a", "$defs": {"a": CIRCLE}}, 4),
        ({"$dynamicRef": "#/$defs/a", "$defs": {"a": CIRCLE}}, "text"),
        ({"allOf": [{"type": "integer", "not": {"$ref": "https://example.com/other"}}]}, 1),
        ({"anyOf": [{"type": "file"}, {"type": "integer"}]}, 1),
        ({"type": "string", "pattern": r"^\p{L}+$"}, "text"),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "type": "string", "pattern": r"^\p{L}+$"}, "text"),
        ({"patternProperties": {r"\p{L}": {}}, "additionalProperties": False, "required": ["city"]}, {"city": "Paris"}),
    ],
)
def test_keywords_that_cannot_be_checked_prevent_no_example(schema: Any, expected: Any) -> None:
    assert example(schema) == expected


@pytest.mark.parametrize(
    "pattern",
    [
        *PATTERNS,
        r"^[a-z]+?$",
        r"^(?:ab){2,}$",
        r"^(?P<year>\d{4})(?<month>\d{2})$".replace("(?<month>", "(?P<month>"),
        r"^[]x]$",
        r"^[^\s-]{3}$",
        r"^[\w.-]+$",
        r"^\.\*\n$",
        r"\bword\b",
        r"^a{,3}$",
        r"^x|y$",
        r"^.\S\D\W$",
        r"^[^\d\Da]?b{2}\x41$",
        "a{",
        "a{x}",
    ],
)
def test_simple_pattern_gets_a_matching_text(pattern: str) -> None:
    text = text_for(pattern)
    assert text is not None
    assert re.search(pattern, text)


@pytest.mark.parametrize("pattern", ["(?=x)", "(?<!x)y", "[a", "(?", r"(a)\1"])
def test_unsupported_pattern_gets_no_text(pattern: str) -> None:
    assert text_for(pattern) is None


def test_without_pythons_private_parser_no_pattern_gets_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cc_loopback.schemas.pattern._parser", None)

    assert text_for("a") is None
