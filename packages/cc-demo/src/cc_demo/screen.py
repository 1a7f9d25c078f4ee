"""The output of the demo in the terminal: one method for each kind of event.

It knows how things look, and not when they happen. All of it is lines that stay, so a log file reads as well as a
terminal.
"""

from pydantic import BaseModel
from rich.console import Console
from rich.panel import Panel
from rich.pretty import Pretty
from rich.table import Table
from rich.text import Text

from .flow import Flow
from .login import AnswerSource, Choice

__all__ = ["Screen", "milliseconds"]

_LABEL_WIDTH = 8
_DIM = "dim"
_NAME = "cyan"


class Screen:
    """Output of the run on `console`, and of its errors on `errors`."""

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
        """Say that a process is there."""
        self._row("", (f"Claude Code was ready after {milliseconds(seconds)}.", _DIM))

    def turn(self, number: int, prompt: str) -> None:
        """Begin a turn of the conversation."""
        self.heading(f"Turn {number}")
        self._row("you", (prompt, "bold"))

    def heading(self, text: str) -> None:
        """Begin a part of the output."""
        self.console.print()
        self.console.rule(Text(text, style="bold"), style=_DIM, align="left")

    def say(self, piece: str) -> None:
        """Write a piece of the model's text."""
        if self._flow is None:
            self._flow = self._begin("model", _DIM)
        self._flow.write(piece)

    def end_text(self) -> None:
        """End the model's text, if it has said anything."""
        if self._flow is not None:
            self._flow.end()
            self._flow = None

    def call(self, name: str, arguments: dict[str, object]) -> None:
        """Show a tool call."""
        listed = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        self._row("call", (name, _NAME), (f"({listed})", ""))

    def result(self, name: str, seconds: float | None, result: object) -> None:
        """Show the result of a tool, and its duration."""
        self._row("result", (name, _NAME), (f"{_in(seconds)}: {result!r}", ""), label_style="green")

    def retry(self, name: str, seconds: float | None, reason: object) -> None:
        """Show that a tool is to be called again; it took no time if it was not run for its arguments."""
        self._row("retry", (name, _NAME), (f"{_in(seconds)}: {reason}", "yellow"), label_style="bold yellow")

    def output(self, output: BaseModel) -> None:
        """Show the output of a run."""
        title = f"output: {type(output).__name__}"
        self.console.print(Panel(Pretty(output), title=title, title_align="left", border_style="green"))

    def usage(self, text: str) -> None:
        """Show the duration of a run."""
        self._row("usage", (text, ""))

    def remark(self, text: str, style: str = "") -> None:
        """Write a paragraph."""
        _write(self.console, text, style)

    def stopped(self) -> None:
        """Say that a signal has ended the demo."""
        self.end_text()
        _write(self.errors, "Stopped.", "yellow")

    def failure(self, text: str) -> None:
        """Print the error and the action to take, in one paragraph."""
        self.end_text()
        _write(self.errors, f"cc-demo failed. {text}", "red")

    def _row(self, label: str, *parts: tuple[str, str], label_style: str = _DIM) -> None:
        self.end_text()
        flow = self._begin(label, label_style)
        for text, style in parts:
            flow.write(text, style)
        flow.end()

    def _begin(self, label: str, style: str) -> Flow:
        self.console.print(Text(label.ljust(_LABEL_WIDTH), style=style), end="")
        return Flow(self.console, _LABEL_WIDTH)


def milliseconds(seconds: float) -> str:
    """A time, as exact as one reads it."""
    value = seconds * 1000
    return f"{value:.2f} ms" if value < 1 else f"{value:.1f} ms" if value < 10 else f"{value:,.0f} ms"


def _in(seconds: float | None) -> str:
    return "" if seconds is None else f" in {milliseconds(seconds)}"


def _write(console: Console, text: str, style: str) -> None:
    flow = Flow(console, 0)
    flow.write(text, style)
    flow.end()
