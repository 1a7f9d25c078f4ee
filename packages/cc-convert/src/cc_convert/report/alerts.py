"""Alerts: conditions on a plan windows and on costs, such as `5h>80%` and `day>$20`."""

import re
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple

from ..folding import fold
from .forecast import WindowUse
from .lines import Line, spell_cost

WINDOWS = {"5h": "five_hour", "7d": "seven_day"}
"""Subjects with a share of a plan window, with their names in the API."""
NAMED = ("session", "project", "model", "agent")
"""Subjects with a cost and a name; a name that no line has is probably a mistake."""
COSTS = ("day", "week", "month", "block", *NAMED, "total")
"""Subjects with a cost."""
_FORM = re.compile(r"(?P<subject>\w+)(?::(?P<name>.+?))?\s*>\s*(?P<dollar>\$?)(?P<limit>\d+(?:\.\d+)?)(?P<percent>%?)")


class AlertError(ValueError):
    """Raised for an invalid condition."""


class Alert(NamedTuple):
    """A condition."""

    text: str
    subject: str
    """A window, or a kind of report line."""
    name: str
    """Pattern for the line key, where `*` and `?` stand for any characters; empty for all."""
    limit: float
    """US dollars, or a share of a window."""

    def matches(self, key: str) -> bool:
        """Return true if the alert is about the line with this key."""
        return not self.name or fnmatchcase(fold(key), fold(self.name))


class Excess(NamedTuple):
    """A value above an alert's limit."""

    alert: Alert
    key: str
    """The line key; empty for a window."""
    message: str


def parse_alert(text: str) -> Alert:
    """Return the condition; an invalid one raises `AlertError`."""
    match = _FORM.fullmatch(text.strip())
    subject = match["subject"] if match else ""
    if match and subject in WINDOWS and match["percent"] and not match["name"] and not match["dollar"]:
        return Alert(text, subject, "", float(match["limit"]) / 100)
    if match and subject in COSTS and not match["percent"]:
        return Alert(text, subject, match["name"] or "", float(match["limit"]))
    raise AlertError(
        f"{text!r} is not an alert: write a window with a share, such as '5h>80%', or one of {', '.join(COSTS)} with "
        "dollars, such as 'day>$20' or 'project:*/shop>$5'"
    )


def excesses(
    alerts: Iterable[Alert], lines: Callable[[str], Iterable[Line]], windows: Iterable[WindowUse] = ()
) -> list[Excess]:
    """Return the values above the alerts' limits, or perhaps above them.

    They are among the lines for a subject, and the windows' newest uses.
    """
    used = {use.kind: use.used for use in windows}
    result: list[Excess] = []
    for alert in alerts:
        if alert.subject in WINDOWS:
            share = used.get(WINDOWS[alert.subject], 0.0)
            if share > alert.limit:
                used_share, limit = f"{share * 100:.0f}%", f"{alert.limit * 100:g}%"
                used_share = f"{share * 100:g}%" if used_share == limit else used_share
                result.append(Excess(alert, "", f"{alert.subject}: {used_share} is more than {limit}"))
            continue
        for line in lines(alert.subject):
            name = line.key if line.key == alert.subject else f"{alert.subject} {line.key}"
            if line.cost > alert.limit and alert.matches(line.key):
                result.append(Excess(alert, line.key, f"{name}: {_amounts(line, alert.limit)}"))
            elif line.unpriced and alert.matches(line.key):
                reason = f"{spell_cost(line.cost, line.unpriced)}, and {line.unpriced:,} tokens have no price"
                result.append(Excess(alert, line.key, f"{name}: cannot be judged: {reason}"))
    return result


def _amounts(line: Line, limit: float) -> str:
    cost = spell_cost(line.cost, line.unpriced)
    # A rounded limit could be above the cost.
    stated = spell_cost(limit) if limit == round(limit, 2 if limit >= 0.01 else 4) else f"${limit:,}"
    # An excess that rounding would hide has more decimals.
    cost = f"${line.cost:,.6f}" if cost == stated else cost
    return f"{cost} is more than {stated}"
