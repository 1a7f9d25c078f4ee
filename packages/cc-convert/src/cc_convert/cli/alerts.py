"""Tell about alerts, and run a command for each."""

import os
import subprocess
from collections.abc import Iterable

from ..report.alerts import Excess
from .output import say, visible

__all__ = ["AlertCommand", "say_alerts"]


def say_alerts(excesses: Iterable[Excess]) -> None:
    """Print alerts on stderr."""
    for excess in excesses:
        say(f"alert: {excess.message}")


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

    def update(self, excesses: Iterable[Excess]) -> None:
        """Start the command for values that were not above their limits at the last call."""
        now = {(excess.alert.text, excess.key): excess for excess in excesses}
        self._running = [process for process in self._running if process.poll() is None]
        for key, excess in now.items():
            if self._command and key not in self._above:
                facts = {"CC_CONVERT_ALERT": excess.alert.text, "CC_CONVERT_ALERT_MESSAGE": visible(excess.message)}
                # The shell is the user's own; a log's text is only in the environment.
                process = subprocess.Popen(
                    self._command, shell=True, env={**os.environ, **facts},
                    stdin=subprocess.DEVNULL, stdout=self._output, stderr=self._output,
                )  # fmt: skip
                self._running.append(process)
        self._above = set(now)

    def wait(self) -> None:
        """Wait for the commands."""
        for process in self._running:
            process.wait()
