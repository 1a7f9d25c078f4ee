"""The one place that touches what claude-agent-sdk keeps private: its `parse_message`.

Expected: a message of a type that an SDK does not know, which a newer CLI may send at any time, is passed over.
Actual: up to 0.1.39 `parse_message` raises `MessageParseError("Unknown message type: …")`, the generator that called it
is finished, and the result that follows is lost. From 0.1.44 on it returns `None` and says so at debug level only.
Upstream: https://github.com/anthropics/claude-agent-sdk-python/issues/599, and 603 in the same place.
Needed by: versions before 0.1.44; their streams then hold a `None` in that place. For later ones the wrapper adds a
warning, nothing else.
Delete it when: no supported version is older than 0.1.44 and nobody wants the warning.

The SDK's `client.py` imports the parser each time it reads, `_internal/client.py` once when it is imported. So the
wrapper goes into the parser's own module, and into every module that holds a reference already. Where the SDK does not
look the way it is expected to, nothing is touched.
"""

import importlib
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import TypeGuard

from .state import Status
from .wrapper import UNKNOWN_TYPE, is_wrapped, surviving_unknown_types

__all__ = ["apply"]

_Parser = Callable[..., object]

_PROBE = {"type": "cc_compat.probe"}
_lock = threading.Lock()


def apply(package: str = "claude_agent_sdk") -> Status:
    """Put the wrapper in place, once. An SDK that looks odd is left alone and never makes this raise."""
    with _lock:
        try:
            sdk = importlib.import_module(package)
            parser = importlib.import_module(f"{package}._internal.message_parser")
        except Exception as error:
            return Status(applied=False, reason=f"{package} cannot be imported in the way it used to be: {error!r}.")
        return _apply_to(package, parser, getattr(sdk, "__version__", None))


def _apply_to(package: str, parser: ModuleType, version: str | None) -> Status:
    parse = getattr(parser, "parse_message", None)
    error_type = getattr(parser, "MessageParseError", None)
    if not _is_parser(parse) or not _is_error_type(error_type):
        return Status(applied=False, reason="The parser is not where it used to be.", sdk_version=version)
    # One layer and no more: what lies under ours may be somebody else's wrapper.
    original: _Parser = getattr(parse, "__wrapped__", parse) if is_wrapped(parse) else parse
    skips = _skips_unknown(original, error_type)
    if skips is None:
        return Status(applied=False, reason="The parser has a new way with unknown types.", sdk_version=version)
    wrapper = parse if is_wrapped(parse) else surviving_unknown_types(original, error_type)
    return Status(
        applied=True,
        reason="An unknown type gives a warning." if skips else "An unknown type no longer ends the stream.",
        sdk_version=version,
        sdk_skips_unknown=skips,
        patched=_put_in_place(package, original, wrapper),
    )


def _skips_unknown(parse: _Parser, error_type: type[Exception]) -> bool | None:
    """What the parser does with an unknown type: skip it, raise in the way known here, or something new."""
    try:
        return True if parse(_PROBE) is None else None
    except Exception as error:
        expected = isinstance(error, error_type) and str(error).startswith(UNKNOWN_TYPE)
        return False if expected else None


def _put_in_place(package: str, original: _Parser, wrapper: _Parser) -> tuple[str, ...]:
    """Replace every reference that a loaded module of the SDK holds, and name them all."""
    places: list[str] = []
    for module_name, module in sorted(sys.modules.copy().items()):
        if module_name == package or module_name.startswith(f"{package}."):
            for name, value in list(getattr(module, "__dict__", {}).items()):
                if value is original:
                    setattr(module, name, wrapper)
                if value is original or value is wrapper:
                    places.append(f"{module_name}.{name}")
    return tuple(places)


def _is_parser(value: object) -> TypeGuard[_Parser]:
    return callable(value)


def _is_error_type(value: object) -> TypeGuard[type[Exception]]:
    return isinstance(value, type) and issubclass(value, Exception)
