"""Usage: of a request, as the API counts grow with the message; and by client and UTC day.

The usage of a day is in a database, so that it survives a restart and several servers may share it.

Amounts are added in memory, and wait for a `flush()` that succeeds. A power failure can lose SQLite's last seconds; the
end of the process loses nothing that was flushed. `flush()` and `today()` wait for the database, and are called in one
thread at a time: the ledger's. So a locked or slow database delays only requests that need it, for a bounded time.
"""

import asyncio
import logging
import math
import operator
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TypeVar

from .usage_database import UsageDatabase, UsageError

logger = logging.getLogger(__name__)

T = TypeVar("T")

RETRY_SECONDS = 1.0
"""The time after which a failed write is tried again."""

# A read takes a millisecond; it may have to wait for an attempt to write.
_READ_SECONDS = 3.0
# Of one answer: sums of any number of them fit into 64 bits.
_MOST_TOKENS = 2**40
_WEEK = timedelta(days=6)


@dataclass(frozen=True, slots=True)
class UsageTotal:
    """An amount of usage."""

    requests: int = 0
    tokens: int = 0
    dollars: float = 0.0
    """US dollars by the list prices; infinite after an answer without a price."""

    def __add__(self, other: "UsageTotal") -> "UsageTotal":
        return UsageTotal(self.requests + other.requests, self.tokens + other.tokens, self.dollars + other.dollars)


@dataclass(frozen=True, slots=True)
class Usage:
    """The API counts, and their price."""

    requests: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    dollars: float = 0.0
    """US dollars by the list prices; infinite if the model has no price."""

    @property
    def all_input(self) -> int:
        """The input tokens, with those read from and written to the cache."""
        return self.input + self.cache_read + self.cache_write

    @property
    def total(self) -> UsageTotal:
        """The same, with tokens of all kinds in a single number."""
        return UsageTotal(self.requests, self.all_input + self.output, self.dollars)

    def __sub__(self, other: "Usage") -> "Usage":
        dollars = 0.0 if math.isinf(other.dollars) else self.dollars - other.dollars
        return Usage(*map(operator.sub, astuple(self)[:-1], astuple(other)[:-1]), dollars=dollars)


class UsageStore:
    """The usage of all clients, in a database."""

    def __init__(self, database: UsageDatabase, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._database, self._clock = database, clock
        self._unwritten: list[tuple[str, str, str, UsageTotal]] = []

    @property
    def has_unwritten(self) -> bool:
        """True if there are amounts that are not in the database yet."""
        return bool(self._unwritten)

    def add(self, client: str, amount: UsageTotal, model: str = "") -> None:
        """Add an amount to a client's usage of a model. May be called in any thread; makes no I/O."""
        # What cannot be written would keep all clients' amounts from being written.
        amount = replace(amount, tokens=max(-_MOST_TOKENS, min(amount.tokens, _MOST_TOKENS)))
        model = "".join(character for character in model if character.isprintable())
        self._unwritten.append((self._day(), client, model, amount))

    def flush(self) -> None:
        """Write the added amounts."""
        if not (amounts := [*self._unwritten]):
            return
        rows = [(day, client, model, *astuple(amount)) for day, client, model, amount in amounts]
        self._database.add(rows)
        del self._unwritten[: len(amounts)]  # others may have been added at the end

    def today(self, client: str) -> UsageTotal:
        """Return a client's usage in this UTC day, with all added amounts."""
        today = self._day()
        rows = self._rows(today, client)
        return sum((amount for day, name, _, amount in rows if (day, name) == (today, client)), UsageTotal())

    def by_model(self) -> list[tuple[str, str, UsageTotal, UsageTotal]]:
        """Return client, model, usage today and usage in the last seven UTC days, the largest first."""
        first_day, today = (self._clock().date() - _WEEK).isoformat(), self._day()
        totals: dict[tuple[str, str], tuple[UsageTotal, UsageTotal]] = {}
        for day, client, model, amount in self._rows(first_day):
            of_today, of_week = totals.get((client, model), (UsageTotal(), UsageTotal()))
            totals[client, model] = (of_today + amount if day == today else of_today, of_week + amount)
        lines = [(*place, *amounts) for place, amounts in totals.items()]
        return sorted(lines, key=lambda line: -line[3].tokens)

    def day_end(self) -> datetime:
        """Return the end of this UTC day, when budgets begin anew."""
        return datetime.combine(self._clock().date() + timedelta(days=1), datetime.min.time(), UTC)

    def seconds_left(self) -> float:
        """Return the seconds to the end of this UTC day."""
        return (self.day_end() - self._clock()).total_seconds()

    def _rows(self, day: str, client: str = "") -> list[tuple[str, str, str, UsageTotal]]:
        stored = self._database.read(day, client)
        amounts = ((*row[:3], UsageTotal(*row[3:])) for row in stored)
        return [*amounts, *self._unwritten]

    def _day(self) -> str:
        return self._clock().date().isoformat()


class UsageLedger:
    """Reads and writes the usage in a store. Only the store methods without I/O may be called elsewhere."""

    def __init__(self, store: UsageStore) -> None:
        self.store = store
        self._thread = ThreadPoolExecutor(1, "cc-server-usage")
        self._error = ""
        self._is_closed = False

    def add(self, client: str, amount: UsageTotal, model: str = "") -> None:
        """Add an amount to a client's usage, and begin to write it. May be called in any thread, also after `close()`.

        A failure is logged, and the write repeated until it succeeds.
        """
        self.store.add(client, amount, model)
        if self._error:
            return
        try:
            self._thread.submit(self._write)
        except RuntimeError:  # the interpreter is ending, and has ended the thread
            self.store.flush()

    async def written(self) -> None:
        """Wait until the added amounts are written, or have to wait for the next attempt."""
        while self.store.has_unwritten and not self._error:
            await asyncio.wrap_future(self._thread.submit(self._write))

    async def today(self, client: str) -> UsageTotal:
        """Return a client's usage in this UTC day, with all added amounts."""
        return await self._read(partial(self.store.today, client))

    async def by_model(self) -> list[tuple[str, str, UsageTotal, UsageTotal]]:
        """Return the usage of all clients and models, as the store does."""
        return await self._read(self.store.by_model)

    async def _read(self, read: Callable[[], T]) -> T:
        if not (problem := self._error):
            try:
                async with asyncio.timeout(_READ_SECONDS):
                    value = await asyncio.wrap_future(self._thread.submit(read))
            except TimeoutError as error:
                raise UsageError(f"the database did not answer within {_READ_SECONDS:g} s") from error
            if not (problem := self._error):
                return value
        raise UsageError(problem)

    async def close(self) -> None:
        """Write the added amounts, in one attempt. From now on nothing is tried again."""
        self._is_closed, self._error = True, ""
        await self.written()

    def _write(self, is_retry: bool = False) -> None:
        if self._error and not is_retry:
            return
        try:
            self.store.flush()
        except Exception as error:
            if not self._error:
                logger.error("The usage of the clients could not be stored yet: %s", error)
            self._error = str(error) or repr(error)
            if not self._is_closed:
                retry = threading.Timer(RETRY_SECONDS, self._thread.submit, (self._write, True))
                retry.daemon = True
                retry.start()
            return
        self._error = ""
        if self.store.has_unwritten:  # `add()` still saw the error
            self._thread.submit(self._write)
