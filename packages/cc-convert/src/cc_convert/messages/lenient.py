"""Validation that drops unusable values with a warning, and keeps the rest."""

import logging
from collections.abc import Mapping
from typing import TypeVar, cast

from pydantic import ValidationError

from cc_types import JsonValue, MessageParseError, WireModel

__all__ = ["read"]

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
            fields = _remove(_unusable_paths(fields, error), fields, where)


def _unusable_paths(fields: dict[str, object], error: ValidationError) -> list[_Path]:
    """Return the paths to leave out, none inside another, in field order."""
    paths: dict[_Path, None] = {}
    for detail in error.errors(include_url=False, include_context=False, include_input=False):
        wanted = detail["loc"][:-1] if detail["type"] == "missing" else detail["loc"]
        path = _existing_path(fields, wanted)
        if not path:
            reason = f"the field {'.'.join(map(str, detail['loc']))} is missing or unusable"
            raise MessageParseError(reason=reason, data=cast("JsonValue", fields))
        paths[path] = None
    return [path for path in paths if not any(path[:length] in paths for length in range(1, len(path)))]


def _existing_path(fields: object, wanted: _Path) -> _Path:
    """Return a path's existing part. An error may point deeper, naming the kind of value that was tried last."""
    path: list[int | str] = []
    for step in wanted:
        if isinstance(fields, Mapping) and step in fields:
            fields = cast("Mapping[object, object]", fields)[step]
        elif isinstance(fields, list) and isinstance(step, int):
            fields = cast("list[object]", fields)[step]
        else:
            break
        path.append(step)
    return tuple(path)


def _remove(paths: list[_Path], fields: dict[str, object], where: str) -> dict[str, object]:
    """Return a copy without these paths. From last to first, so that positions in a list stay valid."""
    copy = cast("dict[str, object]", _copy(fields))
    for path in reversed(paths):
        parent: object = copy
        for step in path[:-1]:
            parent = cast("dict[int | str, object]", parent)[step]
        value = cast("dict[int | str, object]", parent).pop(cast("int", path[-1]))
        name = ".".join(map(str, (where, *path)))
        _logger.warning("Left out %s: a value of type %s cannot be used there", name, type(value).__name__)
    return copy


def _copy(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _copy(member) for key, member in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list):
        return [_copy(member) for member in cast("list[object]", value)]
    return value
