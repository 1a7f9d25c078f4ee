"""The demo output in the terminal: a method for each kind of event, and the summary at the end.

All output is lines that stay, so a log file reads as well as a terminal.
"""

from collections.abc import Sequence
from statistics import median

from pydantic import BaseModel
from pydantic_ai.usage import RunUsage
from rich.console import Console
from rich.panel import Panel
from rich.pretty import Pretty
from rich.table import Table
from rich.text import Text

from .login import AnswerSource, Choice
from .timing import Timing

_LABEL_WIDTH = 8
_DIM = "dim"
_NAME = "cyan"


class Flow:
    """A paragraph that grows: text that arrives in pieces, wrapped at words while it comes.

    Rich wraps a whole text, but streamed text must be on the screen before the line is full.
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


class Screen:
    """Output on `console`, and errors on `errors`."""

    def __init__(self, console: Console, errors: Console) -> None:
        self.console = console
        self.errors = errors
        self._flow: Flow | None = None

    def banner(self, choice: Choice, model_name: str) -> None:
        """Print the login and the options."""
        offline = choice.login is AnswerSource.OFFLINE
        rows = {
            "model": Text(choice.login.value, style="bold black on yellow" if offline else "bold green"),
            "why": Text(f"{choice.reason}. {choice.advice}".rstrip()),
            "name": Text(f"{model_name}, in name only" if offline else model_name),
            "engine": Text("the Claude Code CLI, which answers one request at a time"),
            "agent": Text("a travel planner made with pydantic-ai, which owns the loop and runs the tools"),
        }
        grid = Table.grid()
        grid.add_column(width=_LABEL_WIDTH, style=_DIM)
        grid.add_column(overflow="fold")
        for label, text in rows.items():
            grid.add_row(label, text)
        self.console.print(Panel(grid, title="cc-demo", title_align="left", border_style=_DIM))

    def starting(self) -> None:
        """Say that the first request takes longer."""
        self._row("start", ("Starting Claude Code; the first time on a machine takes some seconds …", _DIM))

    def started(self, seconds: float) -> None:
        """Say that a process is ready."""
        self._row("", (f"Claude Code was ready after {_milliseconds(seconds)}.", _DIM))

    def turn(self, number: int, prompt: str) -> None:
        """Begin a turn of the conversation."""
        self._heading(f"Turn {number}")
        self._row("you", (prompt, "bold"))

    def say(self, piece: str) -> None:
        """Write a piece of the model text."""
        if self._flow is None:
            self._flow = self._begin("model", _DIM)
        self._flow.write(piece)

    def end_text(self) -> None:
        """End the model text, if there is any."""
        if self._flow is not None:
            self._flow.end()
            self._flow = None

    def call(self, name: str, arguments: dict[str, object]) -> None:
        """Show a tool call."""
        pairs = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        self._row("call", (name, _NAME), (f"({pairs})", ""))

    def result(self, name: str, seconds: float | None, result: object) -> None:
        """Show a tool result and duration."""
        self._row("result", (name, _NAME), (f"{_in(seconds)}: {result!r}", ""), label_style="green")

    def retry(self, name: str, seconds: float | None, reason: object) -> None:
        """Show that a tool must be called again; `seconds` is None if its arguments were invalid, so it did not run."""
        self._row("retry", (name, _NAME), (f"{_in(seconds)}: {reason}", "yellow"), label_style="bold yellow")

    def output(self, output: BaseModel, usage: RunUsage, *, is_offline: bool) -> None:
        """Show a run's output, tokens and cost."""
        title = f"output: {type(output).__name__}"
        self.console.print(Panel(Pretty(output), title=title, title_align="left", border_style="green"))
        requests, calls = _count(usage.requests, "request"), _count(usage.tool_calls, "successful tool call")
        cost = "not priced"
        if usage.cost is not None:
            cost = f"${usage.cost:.4f}" + (", had it been Claude" if is_offline else " at API prices")
        tokens = f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"
        self._row("usage", (f"{tokens}; {requests}, {calls}; cost: {cost}", ""))

    def summary(self, timings: Sequence[Timing], start_seconds: Sequence[float], note: str) -> None:
        """Show a table with all requests, and explain it; `start_seconds` has the duration of each process start."""
        self._heading("Requests to the model")
        self.console.print(_table(timings))
        starts = " and ".join(map(_milliseconds, start_seconds))
        times = "once" if len(start_seconds) == 1 else f"{len(start_seconds)} times"
        _write(self.console, f"Claude Code was started {times}, in {starts}.")
        if waits := [timing.wait for timing in timings if not timing.has_started]:
            _write(self.console, _comparison(timings[0].wait, waits), "bold green")
        explanation = "Waited: until the answer began. Wrote: from there to its end, at the model's pace."
        _write(self.console, f"{explanation} {note}", _DIM)

    def failure(self, text: str, style: str = "red") -> None:
        """Print the error and the action to take."""
        self.end_text()
        _write(self.errors, text, style)

    def _heading(self, text: str) -> None:
        self.console.print()
        self.console.rule(Text(text, style="bold"), style=_DIM, align="left")

    def _row(self, label: str, *parts: tuple[str, str], label_style: str = _DIM) -> None:
        self.end_text()
        flow = self._begin(label, label_style)
        for text, style in parts:
            flow.write(text, style)
        flow.end()

    def _begin(self, label: str, style: str) -> Flow:
        self.console.print(Text(label.ljust(_LABEL_WIDTH), style=style), end="")
        return Flow(self.console, _LABEL_WIDTH)


def _table(timings: Sequence[Timing]) -> Table:
    table = Table(border_style="dim", header_style="bold")
    table.add_column("#", justify="right")
    table.add_column("process")
    for name in ("waited", "wrote", "in all"):
        table.add_column(name, justify="right", no_wrap=True)
    for number, timing in enumerate(timings, start=1):
        times = map(_milliseconds, (timing.wait, timing.total - timing.wait, timing.total))
        table.add_row(str(number), "started" if timing.has_started else "warm", *times)
    return table


def _comparison(start_seconds: float, waits: Sequence[float]) -> str:
    middle, best = median(waits), min(waits)
    return (
        f"A warm request waited {_milliseconds(middle)} (median; the fastest {_milliseconds(best)}), against "
        f"{_milliseconds(start_seconds)} for the first one, which started the process: "
        f"{_ratio(start_seconds / middle)}× faster (the fastest {_ratio(start_seconds / best)}×)."
    )


def _ratio(value: float) -> str:
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def _milliseconds(seconds: float) -> str:
    value = seconds * 1000
    return f"{value:.2f} ms" if value < 1 else f"{value:.1f} ms" if value < 10 else f"{value:,.0f} ms"


def _in(seconds: float | None) -> str:
    return "" if seconds is None else f" in {_milliseconds(seconds)}"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" + ("" if number == 1 else "s")


def _write(console: Console, text: str, style: str = "") -> None:
    flow = Flow(console, 0)
    flow.write(text, style)
    flow.end()
