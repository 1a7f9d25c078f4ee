"""Rounds: all contenders get the same command in alternation, so that a busy moment of the computer affects all."""

from collections.abc import Iterable, Mapping

from arena import Talker
from harness.measure import rotated


class Rounds:
    """Times of the contenders in milliseconds, by name; the same index is the same round."""

    def __init__(self) -> None:
        self.milliseconds: dict[str, list[float]] = {}
        self.processor: dict[str, list[float]] = {}
        self.first: dict[str, list[float]] = {}
        self._number = 0

    async def play(self, workers: Mapping[str, Talker], do: str, *, counts: bool = True, **arguments: object) -> None:
        """Send one command to all contenders; a warm-up round does not count."""
        self._number += 1
        for name in rotated(list(workers), self._number):
            found = await workers[name].order(do, **arguments)
            if counts:
                self.milliseconds.setdefault(name, []).append(found["milliseconds"])
                self.processor.setdefault(name, []).append(found["processor"])
                if "first" in found:
                    self.first.setdefault(name, []).append(found["first"])

    async def begin(self, workers: Mapping[str, Talker], *, messages: int = 0, tool: bool = False) -> None:
        """Let all contenders start a new conversation."""
        await self.play(workers, "begin", counts=False, messages=messages, tool=tool)

    def ordered(self, times: Mapping[str, list[float]], names: Iterable[str]) -> dict[str, list[float]]:
        """Return the times in the order of the names, not in the order of execution."""
        return {name: times[name] for name in names if name in times}
