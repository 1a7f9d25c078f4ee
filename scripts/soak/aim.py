"""Map each fault of the API to the request that it affects.

The API applies faults first in, first out, one for each request in the order of arrival. So the number of requests at
the time when a fault is added determines its request. Pure: numbers and marks only.
"""

from collections.abc import Sequence


class Aim:
    """Numbers of faults, and the requests that they affect, counted from 0."""

    def __init__(self) -> None:
        self._forgotten = 0
        self._next = 0
        self._placed: list[tuple[int, int]] = []

    def place(self, fault: int, arrived: int) -> None:
        """Record that a fault is added now, after so many of the recorded requests."""
        position = max(self._next, self._forgotten + arrived)
        self._next = position + 1
        self._placed.append((position, fault))

    def waiting(self, arrived: int) -> int:
        """Return the number of faults that have no request yet."""
        return max(0, self._next - self._forgotten - arrived)

    def take(self, marks: Sequence[str | None]) -> dict[int, str | None]:
        """Return the mark of the request that each fault affected, and delete these requests and faults.

        Args:
            marks: The marks of all recorded requests, in order of arrival.
        """
        end = self._forgotten + len(marks)
        hits = {fault: marks[position - self._forgotten] for position, fault in self._placed if position < end}
        self._placed = [(position, fault) for position, fault in self._placed if position >= end]
        self._forgotten = end
        return hits
