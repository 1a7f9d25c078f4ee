"""Tell about alerts, and run a command for each."""

import os
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator

from ..report.alerts import NAMED, Alert, Excess
from ..report.lines import Line
from .output import say, visible
from .parser import did_you_mean

# Commands that run at the same time; the others begin later.
_MOST_COMMANDS = 8
# A variable of more than 128 KiB, such as with a long name in a log, would make the start fail.
_MESSAGE_CHARACTERS = 2000


def say_alerts(excesses: Iterable[Excess]) -> None:
    """Print alerts on stderr."""
    for excess in excesses:
        say(f"alert: {excess.message}")


def unmatched(alerts: Iterable[Alert], lines: Callable[[str], Iterable[Line]]) -> Iterator[str]:
    """Yield a note for each alert whose name no session, project, model or agent has."""
    for alert in alerts:
        if alert.name and alert.subject in NAMED:
            keys = [line.key for line in lines(alert.subject)]
            if not any(map(alert.matches, keys)):
                hint = did_you_mean(_last_folder(alert.name), keys, _last_folder)
                yield f"note: the alert {alert.text!r} matches no {alert.subject}{hint}"


def _last_folder(name: str) -> str:
    return re.split(r"[/\\]", name)[-1].strip("*?")


class AlertCommand:
    """Runs a shell command once when a value passes its limit, and again after it was below.

    Args:
        command: The command; None runs nothing. Its environment has `CC_CONVERT_ALERT`, the condition, and
            `CC_CONVERT_ALERT_MESSAGE`, the value in words.
        is_quiet: True if its output is dropped, since it would destroy the display.
    """

    def __init__(self, command: str | None, *, is_quiet: bool) -> None:
        self._command = command
        self._output = subprocess.DEVNULL if is_quiet else None
        self._above = set[tuple[str, str]]()
        self._running: list[subprocess.Popen[bytes]] = []

    def update(self, excesses: Iterable[Excess]) -> bool:
        """Start the command for values that were not above their limits at the last call; return true if for all."""
        now = {(excess.alert.text, excess.key): excess for excess in excesses}
        self._running = [process for process in self._running if process.poll() is None]
        wanted = len(now)
        for key, excess in list(now.items()):
            if self._command and key not in self._above:
                if len(self._running) == _MOST_COMMANDS:
                    del now[key]  # at the next call
                    continue
                message = visible(excess.message)[:_MESSAGE_CHARACTERS]
                facts = {"CC_CONVERT_ALERT": excess.alert.text, "CC_CONVERT_ALERT_MESSAGE": message}
                # The shell is the user's own; a log's text is only in the environment.
                process = subprocess.Popen(
                    self._command, shell=True, env={**os.environ, **facts},
                    stdin=subprocess.DEVNULL, stdout=self._output, stderr=self._output,
                )  # fmt: skip
                self._running.append(process)
        self._above = set(now)
        return len(now) == wanted

    def wait(self) -> None:
        """Wait for the commands."""
        for process in self._running:
            process.wait()
