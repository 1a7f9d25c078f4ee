"""Copies and keys of callers' values: the one place that decides when two values are the same.

A warm process serves one caller after another, so a value that is taken for another caller's gives an answer that
belongs to somebody else. Two values are the same only if this closed list says so: plain values with their types, the
containers of JSON with their order, bound methods of the same object, the SDK definitions in `_DEFINITIONS`, and
this project's `value_class`es, by content. All others are the same only if they are one object: functions, callable
objects, open files, servers, policies, and classes unknown here. Nothing asks a caller's object for its `==` or hash.
"""

import logging
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from types import MethodType
from typing import Any, TypeVar, cast
from weakref import WeakSet

from claude_agent_sdk import AgentDefinition, ClaudeAgentOptions, HookMatcher

logger = logging.getLogger(__name__)

T = TypeVar("T")

# Values that are equal to no value of another type here: whole numbers have a tuple with their type as key.
_PLAIN = frozenset((type(None), bool, str, bytes))
_PATH = type(Path())

# Dataclasses of the SDK whose fields are plain values, containers and callables.
_DEFINITIONS: set[type] = {AgentDefinition, ClaudeAgentOptions, HookMatcher}

_reported: WeakSet[type] = WeakSet()


def value_class(cls: type[T]) -> type[T]:
    """Declare a frozen dataclass of this project whose instances are the same if their fields are."""
    _DEFINITIONS.add(cls)
    return cls


def owned(value: T) -> T:
    """Return a copy that no caller can change: containers and definitions are copied whole, objects stay themselves.

    Subclasses of texts, numbers, lists and mappings become the plain type, as JSON has it. Callable objects stay
    themselves, also those that are containers.
    """
    return cast("T", _owned(value))


def _owned(value: Any) -> object:
    kind = cast("type[Any]", type(value))
    if kind in _PLAIN or callable(value):
        return value
    if kind in _DEFINITIONS or isinstance(value, ClaudeAgentOptions):
        kind = ClaudeAgentOptions if isinstance(value, ClaudeAgentOptions) else kind
        make = cast("Callable[..., object]", kind)
        return make(**{entry.name: _owned(getattr(value, entry.name)) for entry in fields(kind) if entry.init})
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, Mapping):
        return {_owned(name): _owned(item) for name, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list):
        return [_owned(item) for item in cast("list[Any]", value)]
    if kind in (tuple, set, frozenset):
        make = cast("Callable[[Iterable[object]], object]", kind)
        return make(map(_owned, cast("Iterable[Any]", value)))
    return cast("object", value)


def identity(value: object) -> Hashable:
    """Return a key, equal for two values that are the same. It holds copies, or else keeps the object alive."""
    kind: type[Any] = type(value)
    if kind in _PLAIN:
        return cast("Hashable", value)
    if kind is int:
        return (int, value)
    if kind is float:
        return (float, cast("float", value).hex())  # -0.0 is another text than 0.0, and NaN is equal to itself
    if kind is dict:
        items = cast("dict[object, object]", value).items()
        return (dict, *((identity(name), identity(item)) for name, item in items))
    if kind in (list, tuple):
        return (kind, *map(identity, cast("list[object]", value)))
    if kind in (set, frozenset):
        return (kind, frozenset(map(identity, cast("set[object]", value))))
    if kind is _PATH:
        return (_PATH, str(value))
    if kind is MethodType:
        method = cast("MethodType", value)
        return (MethodType, _Reference(method.__func__), _Reference(method.__self__))
    if kind in _DEFINITIONS:
        return (kind, *(identity(getattr(value, entry.name)) for entry in fields(kind)))
    if kind not in _reported:
        _reported.add(kind)
        logger.debug("Objects of %s count by identity: with another one, a launch needs another process", kind)
    return _Reference(value)


class _Reference:
    """Key for an object that is the same only as itself; keeps it alive, so that its id stays unique."""

    __slots__ = ("_value",)

    def __init__(self, value: object) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reference) and other._value is self._value

    def __hash__(self) -> int:
        return id(self._value)
