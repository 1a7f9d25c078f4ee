"""Which request each fault of the API falls on.

The API takes faults first in, first out, one for each request in the order of arrival. Who knows how many requests have
arrived when a fault is added thereby knows which one it falls on. Pure: it knows numbers and marks.
"""

from collections.abc import Sequence


class Aim:
    """Numbers of faults, and the requests that they fall on, counted from 0."""

    def __init__(self) -> None:
        self._forgotten = 0
        self._next = 0
        self._placed: list[tuple[int, int]] = []

    def place(self, fault: int, arrived: int) -> None:
        """Note that a fault is added now, when so many requests of those not forgotten have arrived."""
        position = max(self._next, self._forgotten + arrived)
        self._next = position + 1
        self._placed.append((position, fault))

    def waiting(self, arrived: int) -> int:
        """How many faults no request has come for yet."""
        return max(0, self._next - self._forgotten - arrived)

    def take(self, marks: Sequence[str | None]) -> dict[int, str | None]:
        """Return the mark of the request that each fault fell on, and forget these requests and faults.

        Args:
            marks: The marks of all requests that have arrived and are not forgotten, in order.
        """
        end = self._forgotten + len(marks)
        hits = {fault: marks[position - self._forgotten] for position, fault in self._placed if position < end}
        self._placed = [(position, fault) for position, fault in self._placed if position >= end]
        self._forgotten = end
        return hits
