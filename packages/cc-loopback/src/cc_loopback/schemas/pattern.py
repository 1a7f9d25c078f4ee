"""Text that matches a simple regular expression: literals, character classes, groups, alternatives and counts.

For other syntax the text is wrong or missing, so the caller must check it with `re`.
"""

import string
from dataclasses import dataclass

_CLASSES = {"d": "1234567890", "w": string.ascii_letters, "s": " ", "D": "a", "W": "-", "S": "a"}
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r"}
_ANY = string.ascii_letters + string.digits + " -_."
_COUNTED = {"*": 0, "+": 1, "?": 0}


def text_for(pattern: str) -> str | None:
    """Return a text that should match `pattern`, or None if the pattern is not supported."""
    try:
        return _Reader(pattern).alternatives()
    except (_NotSimple, IndexError, ValueError):
        return None


class _NotSimple(Exception):
    pass


@dataclass
class _Reader:
    pattern: str
    at: int = 0

    def alternatives(self) -> str:
        """Read up to the end or a closing parenthesis, and return the first alternative's text."""
        texts = [self._sequence()]
        while self._peek() == "|":
            self.at += 1
            texts.append(self._sequence())
        return texts[0]

    def _sequence(self) -> str:
        pieces: list[str] = []
        while (char := self._peek()) and char not in "|)":
            pieces.append(self._piece())
        return "".join(pieces)

    def _piece(self) -> str:
        unit = self._unit()
        return unit * self._count()

    def _unit(self) -> str:
        match char := self._next():
            case "^" | "$":
                return ""
            case ".":
                return "a"
            case "[":
                return self._set()[0]
            case "(":
                return self._group()
            case "\\":
                return self._escape()[:1]
            case _:
                return char

    def _count(self) -> int:
        char = self._peek()
        if char == "{":
            return self._braces()
        if char not in _COUNTED or not char:
            return 1
        self.at += 1
        self._skip_lazy()
        return _COUNTED[char]

    def _braces(self) -> int:
        end = self.pattern.index("}", self.at)
        least = self.pattern[self.at + 1 : end].split(",")[0]
        self.at = end + 1
        self._skip_lazy()
        return int(least or 0)

    def _skip_lazy(self) -> None:
        if self._peek() == "?":
            self.at += 1

    def _group(self) -> str:
        if self._peek() == "?":
            self._group_kind()
        text = self.alternatives()
        self.at += 1
        return text

    def _group_kind(self) -> None:
        if self.pattern.startswith("?:", self.at):
            self.at += 2
        elif self.pattern.startswith(("?P<", "?<"), self.at) and self.pattern[self.at + 2] not in "=!":
            self.at = self.pattern.index(">", self.at) + 1
        else:
            raise _NotSimple(self.pattern)

    def _set(self) -> str:
        negated = self._peek() == "^"
        self.at += negated
        members = ""
        while (char := self._next()) != "]" or not members:
            if char == "\\":
                members += self._escape()
            elif self._peek() == "-" and self.pattern[self.at + 1] != "]":
                self.at += 1
                members += "".join(map(chr, range(ord(char), ord(self._next()) + 1)))
            else:
                members += char
        return "".join(char for char in _ANY if char not in members) if negated else members

    def _escape(self) -> str:
        char = self._next()
        if char in "bAZ":
            return ""
        return _CLASSES.get(char) or _CONTROLS.get(char) or char

    def _peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def _next(self) -> str:
        self.at += 1
        return self.pattern[self.at - 1]
