"""Values of the official client's types: each member of a union, each literal, and each field by itself."""

from types import UnionType
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from typing_extensions import is_typeddict

_PLAIN: dict[Any, list[Any]] = {
    str: ["A text."], int: [1], float: [0.5], bool: [True, False], type(None): [None], object: [{"a": 1}],
}  # fmt: skip


def values(kind: Any, parents: tuple[Any, ...] = ()) -> list[Any]:
    """Return values of a type, as JSON; none of a type that is its own part, or a file."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Required, NotRequired, Annotated):
        return values(arguments[0], parents)
    if origin in (Union, UnionType):
        return [value for member in arguments for value in values(member, parents)]
    if origin is Literal:
        return [*arguments]
    if origin is dict:
        return [{"key": value} for value in values(arguments[1], parents)]
    if origin is not None:  # a list, or another iterable
        return [[value] for value in values(arguments[0], parents)]
    if kind in parents:
        return []
    if is_typeddict(kind):
        hints = get_type_hints(kind, include_extras=True)
        required = {name for name, hint in hints.items() if get_origin(hint) is Required}
    elif issubclass(kind, BaseModel):
        hints = {field.alias or name: field.annotation for name, field in kind.model_fields.items()}
        required = {field.alias or name for name, field in kind.model_fields.items() if field.is_required()}
    else:
        return _PLAIN.get(kind, [])
    fields = {name: values(hint, (*parents, kind)) for name, hint in hints.items()}
    if not all(fields[name] for name in required):
        return []
    least = {name: fields[name][0] for name in fields if name in required}
    full = {name: choices[0] for name, choices in fields.items() if choices}
    return [least, full, *({**least, name: value} for name, choices in fields.items() for value in choices)]
