"""Escape log texts for the page. Only this module and `answer` put a log's text into it."""

import re
from html import escape

__all__ = ["harmless", "shortened", "text"]

# Control characters cannot be shown, and those that change the writing direction can mislead.
_HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def harmless(value: str) -> str:
    """Replace characters that cannot be shown or that mislead. A carriage return ends a line, as on Windows."""
    if "\r" in value:
        value = value.replace("\r\n", "\n").replace("\r", "\n")
    return _HARMFUL.sub("\N{REPLACEMENT CHARACTER}", value)


def text(value: str) -> str:
    """Escape a text for any place in a page, including quoted attributes."""
    return escape(harmless(value), quote=True)


def shortened(value: str, most: int) -> str:
    """Escape a text for a page; cut a long text and count the cut characters."""
    if len(value) <= most:
        return text(value)
    return f"{text(value[:most])}\n[{len(value) - most:,} more characters are in the log]"
