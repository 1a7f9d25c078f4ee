"""The usage of the clients, for any thread and for the server's event loop: SQLite works in a separate thread.

So a database that is locked or slow delays only requests that need it, for a bounded time.
"""

import asyncio
import logging
import sqlite3
import threading
from concurrent.futures import Future, ThreadPoolExecutor

from .usage_store import UsageStore, UsageTotal

__all__ = ["RETRY_SECONDS", "UsageLedger"]

logger = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
"""The time after which a failed write is tried again."""

# A read takes a millisecond; it may have to wait for an attempt to write.
_READ_SECONDS = 3.0


class UsageLedger:
    """Reads and writes the usage of clients.

    Args:
        store: Keeps the usage. Only its methods without I/O may be called elsewhere.
    """

    def __init__(self, store: UsageStore) -> None:
        self.store = store
        self._thread = ThreadPoolExecutor(1, "cc-messages-usage")
        self._error = ""
        self._is_closed = False

    def add(self, client: str, amount: UsageTotal) -> None:
        """Add an amount to a client's usage, and begin to write it. May be called in any thread, also after `close()`.

        A failure is logged, and the write repeated until it succeeds.
        """
        self.store.add(client, amount)
        if self._error:
            return
        try:
            self._begin()
        except RuntimeError:  # the interpreter is ending, and has ended the thread
            self.store.flush()

    async def written(self) -> None:
        """Wait until the added amounts are written, or have to wait for the next attempt."""
        while self.store.has_unwritten and not self._error:
            await asyncio.wrap_future(self._begin())

    async def today(self, client: str) -> UsageTotal:
        """Return a client's usage in this UTC day, with all added amounts."""
        if not (problem := self._error):
            try:
                async with asyncio.timeout(_READ_SECONDS):
                    total = await asyncio.wrap_future(self._thread.submit(self.store.today, client))
            except TimeoutError as error:
                raise sqlite3.OperationalError(f"the database did not answer within {_READ_SECONDS:g} s") from error
            if not (problem := self._error):
                return total
        raise sqlite3.OperationalError(problem)

    async def close(self) -> None:
        """Write the added amounts, in one attempt. From now on nothing is tried again."""
        self._is_closed, self._error = True, ""
        await self.written()

    def _begin(self, *, is_retry: bool = False) -> Future[None]:
        return self._thread.submit(self._write, is_retry)

    def _write(self, is_retry: bool) -> None:
        if self._error and not is_retry:
            return
        try:
            self.store.flush()
        except Exception as error:
            if not self._error:
                logger.error("The usage of the clients could not be stored yet: %s", error)
            self._error = str(error) or repr(error)
            if not self._is_closed:
                retry = threading.Timer(RETRY_SECONDS, self._begin, kwargs={"is_retry": True})
                retry.daemon = True
                retry.start()
            return
        self._error = ""
        if self.store.has_unwritten:  # `add()` still saw the error
            self._begin()
