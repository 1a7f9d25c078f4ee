"""Decisions about a request: the client, the client's places for requests in progress, and the client budget.

Lives on the server event loop. Every refusal is an error in the API form.
"""

import math
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress

from cc_messages.internals import FinalError
from cc_types import APIError, JsonValue

from .clients import Client, ClientTable
from .usage import RETRY_SECONDS, UsageLedger, UsageTotal
from .usage_database import UsageError

# A place is free as soon as any answer has ended.
_BUSY_RETRY_SECONDS = 1.0


class Admission:
    """Admits requests of the current clients: together at most `max_requests` in progress."""

    def __init__(self, clients: Callable[[], ClientTable], ledger: UsageLedger, max_requests: int) -> None:
        self.clients = clients
        self.ledger = ledger
        self._max_requests = max_requests
        self.in_progress: Counter[str] = Counter()
        """Requests in progress by client."""

    def client(self, tokens: Iterable[bytes]) -> Client:
        """Return the client that sends a request."""
        client = self.clients().find(tokens)
        if client is None:
            raise APIError(
                status=401,
                message="The token of this server is missing or wrong: it goes into x-api-key or Authorization: Bearer",
            )
        return client

    def check_access(self, client: Client, *, to_metrics: bool) -> None:
        """Check that a client may use `/metrics`, or all other paths."""
        if client.access not in ("all", "metrics" if to_metrics else "messages"):
            allowed = "/metrics alone" if client.access == "metrics" else "all paths except /metrics"
            raise APIError(status=403, message=f"The token of the client {client.name} is for {allowed}")

    def check_login(self, client: Client) -> None:
        """Check that a client has a login if it needs one: it must not use another's, nor the server's own."""
        if client.login is None and self.clients().needs_logins:
            raise APIError(status=403, message=f"The client {client.name} has no login, which this server requires")

    @contextmanager
    def place(self, client: Client) -> Generator[None]:
        """Take a place for a request while it is in progress."""
        if self.in_progress.total() >= self._max_requests:
            raise _busy(f"This server answers at most {self._max_requests} requests at a time")
        if client.max_requests is not None and self.in_progress[client.name] >= client.max_requests:
            raise _busy(f"The client {client.name} may have at most {client.max_requests} requests at a time")
        self.in_progress[client.name] += 1
        try:
            yield
        finally:
            self.in_progress[client.name] -= 1

    async def check_budget(self, client: Client) -> None:
        """Check that a client has budget left: the request that crosses it is answered, the next is refused."""
        if not client.has_budget:
            return
        usage = await self._today(client)
        dollars, tokens = client.dollars_per_day, client.tokens_per_day
        if dollars is not None and usage.dollars >= dollars:
            raise self._spent(402, client, f"${usage.dollars:,.4f} of ${dollars:,.4f}")
        if tokens is not None and usage.tokens >= tokens:
            raise self._spent(429, client, f"{usage.tokens:,} of {tokens:,} tokens")

    async def usage_report(self, client: Client) -> dict[str, JsonValue]:
        """Return a client's usage in this UTC day, its limits, and what is left of them."""
        usage = await self._today(client)
        dollars = round(usage.dollars, 6) if math.isfinite(usage.dollars) else None
        return {
            "client": client.name,
            "resets_at": self.ledger.store.day_end().isoformat(),
            "requests": {"used": usage.requests, "in_progress": self.in_progress[client.name]},
            "max_requests": client.max_requests,
            "tokens": _budget(usage.tokens, client.tokens_per_day),
            "dollars": _budget(dollars, client.dollars_per_day),
        }

    async def usage(self) -> dict[str, UsageTotal]:
        """Return each client's usage in this UTC day; without clients whose usage cannot be read."""
        totals: dict[str, UsageTotal] = {}
        with suppress(UsageError):  # logged
            for client in self.clients().clients:
                totals[client.name] = await self.ledger.today(client.name)
        return totals

    async def _today(self, client: Client) -> UsageTotal:
        try:
            return await self.ledger.today(client.name)
        except UsageError as error:
            message = f"This server cannot count the usage of its clients: {error}"
            raise APIError(status=503, message=message, retry_after=RETRY_SECONDS) from error

    def _spent(self, status: int, client: Client, amount: str) -> FinalError:
        return FinalError(
            status=status,
            message=f"The client {client.name} has used {amount} of today's budget, which begins anew at 00:00 UTC",
            retry_after=round(self.ledger.store.seconds_left()),
        )


def _budget(used: float | None, limit: float | None) -> dict[str, JsonValue]:
    """Return usage, limit and remainder. Dollars are None after an answer without a price; then nothing remains."""
    remaining = None if limit is None else 0.0 if used is None else max(0, round(limit - used, 6))
    return {"used": used, "limit": limit, "remaining": remaining}


def _busy(message: str) -> APIError:
    return APIError(status=429, message=message, retry_after=_BUSY_RETRY_SECONDS)
