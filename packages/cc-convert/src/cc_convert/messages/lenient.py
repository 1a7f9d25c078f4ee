"""Validation that drops unusable values with a warning, and keeps the rest."""

import logging
from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar, cast

from pydantic import ValidationError

from cc_types import JsonValue, MessageParseError, WireModel

_logger = logging.getLogger(__name__)

_Value = TypeVar("_Value", bound=WireModel)
_Path = tuple[int | str, ...]


def read(kind: type[_Value], fields: dict[str, object], *, where: str) -> _Value:
    """Validate fields; unusable ones get their default, after a warning with name and type.

    Raises:
        MessageParseError: A field that has no default is missing or unusable.
    """
    while True:
        try:
            return kind.model_validate(fields)
        except ValidationError as error:
            paths = _unusable_paths(fields, error)
            fields = cast("dict[str, object]", _without(fields, paths, where))


def _unusable_paths(fields: dict[str, object], error: ValidationError) -> set[_Path]:
    paths: set[_Path] = set()
    for detail in error.errors(include_url=False, include_context=False, include_input=False):
        wanted_path = detail["loc"][:-1] if detail["type"] == "missing" else detail["loc"]
        path = _existing_path(fields, wanted_path)
        if not path:
            reason = f"the field {'.'.join(map(str, detail['loc']))} is missing or unusable"
            raise MessageParseError(reason=reason, data=cast("JsonValue", fields))
        paths.add(path)
    return paths


def _existing_path(fields: object, wanted_path: _Path) -> _Path:
    """Return a path's existing part. An error may point deeper, naming the kind of value that was tried last."""
    for length, step in enumerate(wanted_path):
        if isinstance(fields, Mapping) and step in fields:
            fields = cast("Mapping[object, object]", fields)[step]
        elif isinstance(fields, list) and isinstance(step, int):
            fields = cast("list[object]", fields)[step]
        else:
            return wanted_path[:length]
    return wanted_path


def _without(value: object, paths: Collection[_Path], where: str, path: _Path = ()) -> object:
    """Return a copy without the values at these paths, after a warning for each."""
    if isinstance(value, Mapping):
        members = cast("Iterable[tuple[int | str, object]]", value.items())
    elif isinstance(value, list):
        members = enumerate(cast("list[object]", value))
    else:
        return value
    copy: dict[int | str, object] = {}
    for step, member in members:
        name = f"{where}.{step}"
        if (*path, step) not in paths:
            copy[step] = _without(member, paths, name, (*path, step))
        else:
            _logger.warning("Left out %s: a value of type %s cannot be used there", name, type(member).__name__)
    return copy if isinstance(value, Mapping) else list(copy.values())
