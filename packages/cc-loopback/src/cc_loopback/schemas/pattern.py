"""Text that matches a regular expression, as Python's own parser reads it.

Without lookaround, back references and conditions: for these the text is missing. Anchors may make the text wrong, so
the caller must check it with `re`.
"""

import re
import string
from contextlib import suppress
from importlib import import_module
from typing import Any

# No public module has the parser. Without it, no pattern is supported.
_parser: Any = None
with suppress(ImportError):
    _parser = import_module("re._parser")

_ANY = string.ascii_letters + string.digits + " -_."
_CATEGORIES = {
    "CATEGORY_DIGIT": (r"\d", "1"),
    "CATEGORY_NOT_DIGIT": (r"\D", "a"),
    "CATEGORY_SPACE": (r"\s", " "),
    "CATEGORY_NOT_SPACE": (r"\S", "a"),
    "CATEGORY_WORD": (r"\w", "a"),
    "CATEGORY_NOT_WORD": (r"\W", "-"),
}
# A named group, as JavaScript writes it.
_NAMED_GROUP = re.compile(r"\(\?<(?![=!])")


def text_for(pattern: str) -> str | None:
    """Return a text that should match `pattern`, or None if the pattern is not supported."""
    if _parser is None:
        return None
    try:
        return _texts(_parser.parse(_NAMED_GROUP.sub("(?P<", pattern)))
    except (re.error, NotImplementedError):
        return None


def _texts(parts: Any) -> str:
    return "".join(_text(str(kind), value) for kind, value in parts)


def _text(kind: str, value: Any) -> str:
    match kind:
        case "AT":
            return ""
        case "ANY":
            return "a"
        case "LITERAL":
            return chr(value)
        case "NOT_LITERAL":
            return _other_characters([("LITERAL", value)])
        case "RANGE":
            return chr(value[0])
        case "CATEGORY":
            return _CATEGORIES[str(value)][1]
        case "IN":
            return _other_characters(value[1:]) if str(value[0][0]) == "NEGATE" else _texts(value[:1])
        case "BRANCH":
            return _texts(value[1][0])
        case "SUBPATTERN":
            return _texts(value[-1])
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return _texts(value[2]) * value[0]
        case _:
            raise NotImplementedError


def _other_characters(members: Any) -> str:
    """Return a character that is not in a set; empty if there is none."""
    return next((char for char in _ANY if not any(_is_member(char, str(kind), value) for kind, value in members)), "")


def _is_member(char: str, kind: str, value: Any) -> bool:
    if kind == "CATEGORY":
        return re.match(_CATEGORIES[str(value)][0], char) is not None
    low, high = value if kind == "RANGE" else (value, value)
    return low <= ord(char) <= high
