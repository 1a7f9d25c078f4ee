"""Rounds: everyone is told the same, in turns, so that a busy moment of the computer meets them all."""

from collections.abc import Iterable, Mapping

from arena import Talker
from harness.measure import rotated


class Rounds:
    """What contenders took, in milliseconds, by name; those of one round stand at the same place."""

    def __init__(self) -> None:
        self.milliseconds: dict[str, list[float]] = {}
        self.processor: dict[str, list[float]] = {}
        self.first: dict[str, list[float]] = {}
        self._number = 0

    async def play(self, workers: Mapping[str, Talker], do: str, *, counts: bool = True, **arguments: object) -> None:
        """Give everyone one order; a round to warm up does not count."""
        self._number += 1
        for name in rotated(list(workers), self._number):
            found = await workers[name].order(do, **arguments)
            if counts:
                self.milliseconds.setdefault(name, []).append(found["milliseconds"])
                self.processor.setdefault(name, []).append(found["processor"])
                if "first" in found:
                    self.first.setdefault(name, []).append(found["first"])

    async def begin(self, workers: Mapping[str, Talker], *, messages: int = 0, tool: bool = False) -> None:
        """Let everyone begin another conversation."""
        await self.play(workers, "begin", counts=False, messages=messages, tool=tool)

    def ordered(self, times: Mapping[str, list[float]], names: Iterable[str]) -> dict[str, list[float]]:
        """The times in the order of the names, and not of who happened to be first."""
        return {name: times[name] for name in names if name in times}
