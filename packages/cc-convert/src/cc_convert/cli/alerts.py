"""Tell about alerts."""

import re
from collections.abc import Callable, Iterable, Iterator

from ..report.alerts import NAMED, Alert, Excess
from ..report.lines import Line
from .output import say
from .parser import did_you_mean


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
