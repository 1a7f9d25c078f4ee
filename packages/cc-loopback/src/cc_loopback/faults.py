"""An injected fault. The application converts it to a response."""

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
