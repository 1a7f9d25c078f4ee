"""The usage of the clients for a server's event loop: SQLite works in a thread of its own.

So a database that is locked or slow delays only requests that need it, for a bounded time. Lives on the event loop,
except `add()`.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, TypeVarTuple

from .usage_store import UsageStore, UsageTotal

__all__ = ["RETRY_SECONDS", "UsageLedger"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

logger = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
"""The time after which a failed write is tried again."""

# A read takes a millisecond; it can have to wait for an attempt to write.
_READ_SECONDS = 3.0


class UsageLedger:
    """Reads and writes the usage of clients.

    Args:
        store: Keeps it.
    """

    def __init__(self, store: UsageStore) -> None:
        self.store = store
        """Keeps it. Only its methods without I/O may be called elsewhere."""
        self._thread = ThreadPoolExecutor(1, "cc-messages-usage")
        self._writing: asyncio.Task[None] | None = None
        self._error = ""

    def add(self, client: str, amount: UsageTotal) -> None:
        """Add an amount to the usage of a client. May be called in any thread; `write()` has to follow on the loop."""
        self.store.add(client, amount)

    def write(self) -> None:
        """Begin to write the added amounts. A failure is logged, and the attempt repeated until it succeeds."""
        if not self._error:
            self._begin()

    async def written(self) -> None:
        """Wait until the added amounts are written, or have to wait for the next attempt."""
        while self.store.has_unwritten and not self._error:
            await asyncio.wait({self._begin()})

    async def today(self, client: str) -> UsageTotal:
        """Return the usage of a client in this UTC day, with all added amounts."""
        if not self._error:
            try:
                async with asyncio.timeout(_READ_SECONDS):
                    total = await self._in_thread(self.store.today, client)
            except TimeoutError as error:
                raise sqlite3.OperationalError(f"the database did not answer within {_READ_SECONDS:g} s") from error
            if not self._error:
                return total
        raise sqlite3.OperationalError(self._error)

    async def close(self) -> None:
        """Write the added amounts, in one attempt."""
        self._error = ""
        await self.written()

    def _begin(self) -> asyncio.Task[None]:
        if self._writing is None or self._writing.done():
            self._writing = asyncio.ensure_future(self._write())
        return self._writing

    async def _write(self) -> None:
        while self.store.has_unwritten:
            try:
                await self._in_thread(self.store.flush)
            except Exception as error:
                if not self._error:
                    logger.error("The usage of the clients could not be stored yet: %s", error)
                self._error = str(error) or repr(error)
                asyncio.get_running_loop().call_later(RETRY_SECONDS, self._begin)
                return
        self._error = ""

    def _in_thread(self, function: Callable[[*Ts], T], *arguments: *Ts) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)
