"""Limits of a pool: number, memory and idle time of processes, prewarming and recycling."""

from collections.abc import Iterable
from dataclasses import dataclass, fields

__all__ = ["PoolLimits", "refuse_keywords"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolLimits:
    """Limits on a pool's processes: number, memory and time.

    Raises:
        ValueError: A limit is not positive, or `prewarm` is greater than `size`.
    """

    size: int = 4
    """Maximum number of processes. Each takes some 100 MB of unshared memory, and more in long use."""
    prewarm: int = 1
    """Number of clean processes kept ready for the pool's options, ahead of need."""
    start_limit: int = 2
    """Maximum number of simultaneous starts, which processors limit, too: a start takes one for a third of a second."""
    max_uses: int = 500
    """Number of leases after which a process is replaced."""
    max_rss_mb: float = 400
    """Resident memory, in megabytes, at which a returned process is replaced."""
    max_total_mb: float | None = None
    """Total memory, in megabytes, at which no more processes are started; shared pages count once. None means no
    limit."""
    idle_seconds: float = 300
    """Time without a lease after which a process is ended, except the processes that `prewarm` keeps."""

    @classmethod
    def of(cls, limits: "PoolLimits | int") -> "PoolLimits":
        """Return the limits; a number is the size, without processes ahead of need."""
        return limits if isinstance(limits, PoolLimits) else cls(size=limits, prewarm=0)

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name != "prewarm" and value is not None and not value > 0:
                raise ValueError(f"{field.name} is {value}: it must be greater than 0")
        if not 0 <= self.prewarm <= self.size:
            raise ValueError(f"prewarm is {self.prewarm}: it must lie between 0 and the size, {self.size}")


def refuse_keywords(caller: str, names: Iterable[str], argument: str) -> None:
    """Raise `TypeError` for any of the `names`, keywords that `caller` lacks; limits belong into `argument`."""
    limits = {field.name for field in fields(PoolLimits)}
    for name in names:
        advice = f": use {argument}=PoolLimits({name}=...)" if name in limits else ""
        raise TypeError(f"{caller} got an unexpected keyword argument {name!r}{advice}")
