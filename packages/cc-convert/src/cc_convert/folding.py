"""One form for texts that people write in several: search, filters and alerts compare this form."""

import unicodedata

_DOT = "i\N{COMBINING DOT ABOVE}"


def fold(text: str) -> str:
    """Return a text without differences in case, and in the form of accents. A part of a text gives a part of it."""
    if text.isascii():
        return text.lower()
    # The Turkish capital I has a dot, which its small letter has, too.
    return unicodedata.normalize("NFD", text).casefold().replace(_DOT, "i")
