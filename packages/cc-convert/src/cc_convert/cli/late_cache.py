"""Write the cache after the output, so that a first report is there as early as without a cache."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

from ..log_files.cache import Cache, Identity, Packed
from ..log_files.rows import FileScan

__all__ = ["LateCache", "write_late"]

_waiting: list[Callable[[], None]] = []


class LateCache(Cache):
    """A cache whose entries `write_late` writes."""

    def put(self, scans: Mapping[str, tuple[Identity, FileScan, bytes]]) -> None:
        """Store scans by path, as `Cache.put` does, but later."""
        _waiting.append(partial(super().put, scans))

    def store(self, name: str, value: Packed) -> None:
        """Store a value, as `Cache.store` does, but later, and without an error if the folder cannot be written."""
        _waiting.append(partial(super().store, name, value))


def write_late() -> None:
    """Write the entries of all late caches."""
    while _waiting:
        # After a failed write the logs are read again next time.
        with suppress(OSError):
            _waiting.pop(0)()
