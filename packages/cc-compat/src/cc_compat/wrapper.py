"""A wrapper for message parsers that skips unknown types. It imports no SDK: parser and error type are parameters."""

import functools
import logging
import reprlib
from collections.abc import Callable
from typing import TypeVar, cast

_logger = logging.getLogger(__name__)

_Message = TypeVar("_Message")

UNKNOWN_TYPE = "Unknown message type: "
"""Prefix of the SDK error for an unknown type. Only this distinguishes it from a malformed message."""

_MARK = "__cc_compat__"
_EXCERPT_CHARACTERS = 500

# Limits the depth first, so that a message of megabytes is not formatted and then cut.
_excerpt = reprlib.Repr()
_excerpt.maxlevel = 4
_excerpt.maxdict = _excerpt.maxlist = 10
_excerpt.maxstring = _excerpt.maxother = 100


def surviving_unknown_types(
    parse: Callable[..., _Message], error_type: type[Exception]
) -> Callable[..., _Message | None]:
    """Wrap a parser, so that an unknown message type returns `None` and logs a warning.

    Every other error propagates, also an error for unknown types with another wording: a visible failure is better
    than a lost message.
    """

    @functools.wraps(parse)
    def parse_message(data: object, *args: object, **kwargs: object) -> _Message | None:
        try:
            message = parse(data, *args, **kwargs)
        except error_type as error:
            if not str(error).startswith(UNKNOWN_TYPE):
                raise
            message = None
        if message is None:
            _logger.warning("Skipped a message of the unknown type %s: %s", _type_of(data), _shortened(data))
        return message

    setattr(parse_message, _MARK, True)
    return parse_message


def is_wrapped(parse: object) -> bool:
    """Return true if a parser has been wrapped already."""
    return hasattr(parse, _MARK)


def _type_of(data: object) -> str:
    return repr(cast("dict[object, object]", data).get("type")) if isinstance(data, dict) else "?"


def _shortened(data: object) -> str:
    text = _excerpt.repr(data)
    return text if len(text) <= _EXCERPT_CHARACTERS else f"{text[:_EXCERPT_CHARACTERS]}…"
