"""Faults that wait for the requests they are meant for.

Decides which fault a request gets; how it looks on the wire is the application's business.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from .errors import error_type_for

_LOWEST_ERROR, _HIGHEST_ERROR = 400, 599


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with one request."""

    status: int | None = None
    after_events: int | None = None
    error_type: str = "api_error"
    message: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    delay: float = 0.0

    @property
    def refuses(self) -> bool:
        """Whether the request is answered with an error status and nothing else."""
        return self.status is not None and self.after_events is None


def make_fault(
    status: int | None,
    after_events: int | None,
    error_type: str | None,
    message: str | None,
    headers: Mapping[str, str] | None,
    delay: float | None,
) -> Fault:
    """Check a fault's parts and put them together.

    Raises:
        ValueError: The parts describe no fault, or one that HTTP cannot carry.
    """
    if status is None and after_events is None and delay is None:
        raise ValueError("a fault needs at least one of status, after_events and delay")
    if status is not None and not _LOWEST_ERROR <= status <= _HIGHEST_ERROR:
        raise ValueError(f"status must be an error status from 400 to 599, not {status}")
    if after_events is not None and after_events < 0:
        raise ValueError(f"after_events must not be negative, but is {after_events}")
    if delay is not None and delay < 0:
        raise ValueError(f"delay must not be negative, but is {delay}")
    return Fault(
        status=status,
        after_events=after_events,
        error_type=error_type or error_type_for(status or 500),
        message=message,
        headers=dict(headers or {}),
        delay=delay or 0.0,
    )


class FaultQueue:
    """First in, first out, per path; filled by a test's thread, emptied by the server's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, list[Fault]] = {}

    def add(self, path: str, fault: Fault, times: int) -> None:
        """Queue `fault` for the next `times` requests to `path` that no earlier fault takes.

        Raises:
            ValueError: `times` is below 1.
        """
        if times < 1:
            raise ValueError(f"times must be at least 1, but is {times}")
        with self._lock:
            self._waiting.setdefault(path, []).extend([fault] * times)

    def clear(self) -> None:
        """Forget all faults that wait."""
        with self._lock:
            self._waiting.clear()

    def take(self, path: str) -> Fault | None:
        """Remove and return the fault of the request that came in now, if one waits for it."""
        with self._lock:
            waiting = self._waiting.get(path)
            return waiting.pop(0) if waiting else None
