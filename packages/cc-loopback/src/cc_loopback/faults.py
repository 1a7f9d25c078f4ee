"""Queue of injected faults. The application converts a fault to a response."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

_LOWEST_ERROR, _HIGHEST_ERROR = 400, 599


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault for a request. Without an `error_type`, it is the type that belongs to the status.

    Raises:
        ValueError: A number is out of range.
    """

    status: int | None = None
    after_events: int | None = None
    error_type: str | None = None
    message: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    delay: float = 0.0

    def __post_init__(self) -> None:
        if self.status is not None and not _LOWEST_ERROR <= self.status <= _HIGHEST_ERROR:
            raise ValueError(f"status must be an error status from 400 to 599, not {self.status}")
        if self.after_events is not None and self.after_events < 0:
            raise ValueError(f"after_events must not be negative, but is {self.after_events}")
        if self.delay < 0:
            raise ValueError(f"delay must not be negative, but is {self.delay}")

    @property
    def refuses(self) -> bool:
        """True if the whole response is an error status."""
        return self.status is not None and self.after_events is None


class FaultQueue:
    """Thread-safe queue of faults for each path."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queues: dict[str, list[Fault]] = {}

    def add(self, path: str, fault: Fault, times: int) -> None:
        """Queue `fault` for the next `times` requests to `path` that have no earlier fault.

        Raises:
            ValueError: `times` is below 1.
        """
        if times < 1:
            raise ValueError(f"times must be at least 1, but is {times}")
        with self._lock:
            self._queues.setdefault(path, []).extend([fault] * times)

    def clear(self) -> None:
        """Remove all queued faults."""
        with self._lock:
            self._queues.clear()

    def take(self, path: str) -> Fault | None:
        """Remove and return the first queued fault for `path`, or None."""
        with self._lock:
            queue = self._queues.get(path)
            return queue.pop(0) if queue else None
