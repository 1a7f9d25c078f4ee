"""An account's limits as the API reports them with each response: plan windows, and limits for an API key.

With an API key the API sends its documented headers `anthropic-ratelimit-{requests,tokens,…}-{limit,remaining,reset}`.
With a subscription it sends `anthropic-ratelimit-unified-*`, which it does not document; the names here come from the
tested CLI and from public reports. Unknown headers are kept.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from math import isfinite
from typing import Self, cast

from pydantic import AwareDatetime, Field, JsonValue

from .wire import JsonObject, WireModel

_PREFIX = "anthropic-ratelimit-"
_HEADER = re.compile(
    r"unified-(?P<window>\d+[a-z]+(?:_\w+)?|overage)-(?P<window_fact>utilization|reset|status)"
    r"|unified-(?P<plan_fact>status|reset|representative-claim)"
    r"|(?!unified-)(?P<rate>.+)-(?P<rate_fact>limit|remaining|reset)"
)

# Window names in headers, and in the CLI and the SDK.
_KINDS = {
    "5h": "five_hour",
    "7d": "seven_day",
    "7d_oi": "seven_day_overage_included",
    "7d_opus": "seven_day_opus",
    "7d_sonnet": "seven_day_sonnet",
}
_OVERAGE = "overage"
_REJECTED = "rejected"

# Larger values are milliseconds: in seconds this value is in the year 5138.
_LATEST_SECOND = 1e11


class LimitWindow(WireModel):
    """A plan window, such as the last five hours."""

    kind: str
    """`five_hour`, `seven_day`, `seven_day_overage_included`, `overage` (extra usage), or the name in the header."""
    utilization: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Used share of the limit: 0.42 is 42 %. It can be above 1."""
    resets_at: AwareDatetime | None = None
    """Time when the window is reset."""
    status: str | None = None
    """`allowed`, `allowed_warning` or `rejected`."""


class RateLimit(WireModel):
    """A limit for an API key, which is replenished continuously."""

    kind: str
    """`requests`, `tokens`, `input_tokens`, `output_tokens`, or the name in the header."""
    limit: int | None = None
    """Allowed number in a minute."""
    remaining: int | None = None
    """Remaining number. The API rounds tokens to thousands."""
    resets_at: AwareDatetime | None = None
    """Time when the limit is fully replenished."""


class RateLimits(WireModel):
    """All limits in a response."""

    observed_at: AwareDatetime = Field(default_factory=lambda: datetime.now(UTC))
    """Time when the response came."""
    status: str | None = None
    """The plan status for the request: `allowed`, `allowed_warning` or `rejected`."""
    resets_at: AwareDatetime | None = None
    """Reset time for the window that determined the status."""
    decided_by: str | None = None
    """Kind of window that determined the status (the header `…-unified-representative-claim`)."""
    windows: tuple[LimitWindow, ...] = ()
    """A plan windows, shortest first as the API names them; empty with an API key."""
    rates: tuple[RateLimit, ...] = ()
    """Limits for an API key; empty with a subscription."""
    other: JsonObject = Field(default_factory=dict[str, JsonValue])
    """All other facts: headers under their full names, or fields in the CLI event."""

    @property
    def age(self) -> float:
        """Return the seconds since the response."""
        return max(0.0, (datetime.now(UTC) - self.observed_at).total_seconds())

    def window(self, kind: str) -> LimitWindow | None:
        """Return the window with this kind, or None if the response has none."""
        return next((window for window in self.windows if window.kind == kind), None)

    @property
    def exhausted(self) -> LimitWindow | None:
        """Return the used-up window, among several the last to reset. Extra usage may still pay for requests."""
        rejected = [one for one in self.windows if one.status == _REJECTED and one.kind != _OVERAGE]
        if not rejected and self.status == _REJECTED:
            return LimitWindow(kind=self.decided_by or "plan", resets_at=self.resets_at, status=_REJECTED)
        return max(rejected, key=lambda one: one.resets_at or self.observed_at, default=None)

    @property
    def exhausted_until(self) -> datetime | None:
        """Return when the used-up window is reset; None if no window is used up, or the time is unknown."""
        window = self.exhausted
        return None if window is None else window.resets_at or self.resets_at

    @classmethod
    def from_headers(cls, headers: Mapping[str, str], *, observed_at: datetime | None = None) -> Self | None:
        """Read a response headers; None if they contain no limits. Never raises for invalid values."""
        facts = {
            name.lower().removeprefix(_PREFIX): value
            for name, value in headers.items()
            if name.lower().startswith(_PREFIX)
        }
        if not facts:
            return None
        windows: dict[str, dict[str, object]] = {}
        rates: dict[str, dict[str, object]] = {}
        top: dict[str, object] = {}
        other: dict[str, JsonValue] = {}
        for name, value in facts.items():
            match = _HEADER.fullmatch(name)
            fact = "" if match is None else match["window_fact"] or match["plan_fact"] or match["rate_fact"]
            read = None if match is None else _READERS[fact](value)
            if match is None or read is None:
                other[f"{_PREFIX}{name}"] = value
                continue
            if match["window"]:
                holder = windows.setdefault(match["window"], {})
            else:
                holder = rates.setdefault(match["rate"].replace("-", "_"), {}) if match["rate"] else top
            holder[_FIELDS.get(fact, fact)] = read
        top["rates"] = [{"kind": kind, **fields} for kind, fields in rates.items()]
        named = {_KINDS.get(kind, kind): fields for kind, fields in sorted(windows.items())}
        return cls._read(observed_at, named, **top, other=other)

    @classmethod
    def from_event(cls, info: Mapping[str, JsonValue], *, observed_at: datetime | None = None) -> Self | None:
        """Read `rate_limit_info` in the CLI's `rate_limit_event`, which is `RateLimitInfo.raw` in the SDK.

        The CLI sends it with a subscription, after a change. None if it has neither a window nor a time: the CLI then
        found no limits in a response. Never raises for invalid values.
        """
        rest = dict(info)
        kind, status = _text(rest.pop("rateLimitType", None)), _text(rest.pop("status", None))
        resets_at, utilization = _time(rest.pop("resetsAt", None)), _share(rest.pop("utilization", None))
        windows: dict[str, dict[str, object]] = {}
        unified = rest.pop("unifiedWindows", None)
        for name, value in (unified if isinstance(unified, dict) else {}).items():
            facts = value if isinstance(value, dict) else {}
            windows[name] = {
                "utilization": _share(facts.get("utilization")),
                "resets_at": _time(facts.get("resetsAt")),
                "status": _text(facts.get("status")),
            }
        if kind:
            windows.setdefault(kind, {"utilization": utilization, "resets_at": resets_at, "status": status})
        overage = {
            "status": _text(rest.pop("overageStatus", None)),
            "resets_at": _time(rest.pop("overageResetsAt", None)),
        }
        if facts := {name: value for name, value in overage.items() if value is not None}:
            windows[_OVERAGE] = {**windows.get(_OVERAGE, {}), **facts}
        if not windows and resets_at is None:
            return None
        return cls._read(observed_at, windows, status=status, resets_at=resets_at, decided_by=kind, other=rest)

    @classmethod
    def _read(cls, observed_at: datetime | None, windows: Mapping[str, Mapping[str, object]], **fields: object) -> Self:
        time = {} if observed_at is None else {"observed_at": observed_at}
        listed = [{"kind": kind, **facts} for kind, facts in windows.items()]
        return cls.model_validate({**time, **fields, "windows": listed})


def _number(value: object) -> float | None:
    with suppress(ValueError, TypeError, OverflowError):
        number = float(cast("str | float", value))
        return number if isfinite(number) else None
    return None


def _share(value: object) -> float | None:
    number = _number(value)
    # The API has sent -0.0.
    return None if number is None or number < 0 else abs(number)


def _count(value: object) -> int | None:
    number = _share(value)
    return None if number is None else int(number)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _time(value: object) -> datetime | None:
    """Read seconds since 1970, or a time as in RFC 3339."""
    number = _number(value)
    with suppress(ValueError, OverflowError, OSError):
        if number is not None:
            return datetime.fromtimestamp(number / 1000 if number > _LATEST_SECOND else number, UTC)
        if isinstance(value, str):
            read = datetime.fromisoformat(value)
            return read if read.tzinfo is not None else read.replace(tzinfo=UTC)
    return None


_FIELDS = {"reset": "resets_at", "representative-claim": "decided_by"}
_READERS: Mapping[str, Callable[[object], object]] = {
    "limit": _count,
    "remaining": _count,
    "representative-claim": _text,
    "reset": _time,
    "status": _text,
    "utilization": _share,
}
