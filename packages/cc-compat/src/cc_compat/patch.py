"""The patch for claude-agent-sdk's private `parse_message`, in the only module that uses the SDK internals.

Expected: the SDK skips messages with unknown types, which a newer CLI may send at any time.
Actual: up to 0.1.39 `parse_message` raises `MessageParseError("Unknown message type: …")`, the generator that called it
is finished, and the result that follows is lost. From 0.1.44 on it returns `None` and logs at debug level only.
Upstream: https://github.com/anthropics/claude-agent-sdk-python/issues/599, and 603 in the same place.
Needed by: versions before 0.1.44; their streams then yield `None` for such a message. For later ones the wrapper only
adds a warning.
Delete it when: no supported version is older than 0.1.44 and the warning is not needed.

The SDK's `client.py` imports the parser on each read, `_internal/client.py` once at import. So the wrapper replaces the
parser in its own module and in every loaded module with a reference to it. If the SDK differs from this description,
nothing is changed.
"""

import importlib
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import TypeGuard

from .state import Status
from .wrapper import UNKNOWN_TYPE, is_wrapped, surviving_unknown_types

_Parser = Callable[..., object]

_PROBE = {"type": "cc_compat.probe"}
_lock = threading.Lock()


def apply(package: str = "claude_agent_sdk") -> Status:
    """Install the wrapper once. An unexpected SDK is left unchanged and never makes this raise."""
    with _lock:
        try:
            sdk = importlib.import_module(package)
            parser = importlib.import_module(f"{package}._internal.message_parser")
        except Exception as error:
            return Status(applied=False, reason=f"{package} cannot be imported as expected: {error!r}.")
        return _apply_to(package, parser, getattr(sdk, "__version__", None))


def _apply_to(package: str, parser: ModuleType, version: str | None) -> Status:
    parse = getattr(parser, "parse_message", None)
    error_type = getattr(parser, "MessageParseError", None)
    if not _is_parser(parse) or not _is_error_type(error_type):
        return Status(applied=False, reason="The SDK has no parser at the known place.", sdk_version=version)
    # A single layer: below our wrapper there may be another package's wrapper.
    original: _Parser = getattr(parse, "__wrapped__", parse) if is_wrapped(parse) else parse
    skips = _skips_unknown(original, error_type)
    if skips is None:
        return Status(applied=False, reason="The parser handles unknown types in a new way.", sdk_version=version)
    wrapper = parse if is_wrapped(parse) else surviving_unknown_types(original, error_type)
    return Status(
        applied=True,
        reason="An unknown type gives a warning." if skips else "An unknown type no longer ends the stream.",
        sdk_version=version,
        sdk_skips_unknown=skips,
        patched=_put_in_place(package, original, wrapper),
    )


def _skips_unknown(parse: _Parser, error_type: type[Exception]) -> bool | None:
    """Return true if the parser skips an unknown type, `False` if it raises the known error, `None` for all else."""
    try:
        return True if parse(_PROBE) is None else None
    except Exception as error:
        expected = isinstance(error, error_type) and str(error).startswith(UNKNOWN_TYPE)
        return False if expected else None


def _put_in_place(package: str, original: _Parser, wrapper: _Parser) -> tuple[str, ...]:
    """Replace every reference in the SDK's loaded modules, and return their names."""
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
