"""Texts of logs as harmless text of a page. Nothing else puts a log's text into one."""

import re
from html import escape

__all__ = ["shortened", "text"]

# Control characters have no form on a page, and those that turn the direction of writing make it lie.
_HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def text(value: str) -> str:
    """A text for any place in a page, inside of an attribute's quotes too."""
    return escape(_HARMFUL.sub("\N{REPLACEMENT CHARACTER}", value), quote=True)


def shortened(value: str, most: int) -> str:
    """A text for a page, cut off if it is long; what is missing is said."""
    if len(value) <= most:
        return text(value)
    return f"{text(value[:most])}\n[{len(value) - most:,} more characters are in the log]"
