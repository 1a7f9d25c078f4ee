"""Text that arrives in pieces, wrapped at words while it comes. Independent of the content.

Rich wraps a whole text. Streamed text must be on the screen before the line is full.
"""

from rich.console import Console
from rich.text import Text


class Flow:
    """A paragraph that grows.

    A piece may end within a word, so a word is written when the character after it has come. The cursor is at first in
    the column `indent`, where all lines begin.
    """

    def __init__(self, console: Console, indent: int) -> None:
        self._console = console
        self._indent = indent
        self._column = indent
        self._has_gap = False
        self._word = Text()

    def write(self, piece: str, style: str = "") -> None:
        """Take the next piece."""
        for character in piece:
            if not character.isspace():
                self._word.append(character, style)
                continue
            self._end_word()
            if character == "\n":
                self._break()
            else:
                self._has_gap = self._column > self._indent

    def end(self) -> None:
        """Write the rest, and end the line."""
        self._end_word()
        self._print(Text("\n"))

    def _end_word(self) -> None:
        word, self._word = self._word, Text()
        if not word:
            return
        if self._column > self._indent and self._column + self._has_gap + word.cell_len > self._console.width:
            self._break()
        if self._has_gap:
            self._put(Text(" "))
        # A word that is longer than a line is cut.
        for index, part in enumerate(word.wrap(self._console, max(1, self._console.width - self._indent))):
            if index:
                self._break()
            self._put(part)
        self._has_gap = False

    def _break(self) -> None:
        self._print(Text("\n" + " " * self._indent))
        self._column = self._indent
        self._has_gap = False

    def _put(self, text: Text) -> None:
        self._print(text)
        self._column += text.cell_len

    def _print(self, text: Text) -> None:
        self._console.print(text, end="", soft_wrap=True)
