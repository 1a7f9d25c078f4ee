"""The server's clients: names, tokens and limits. A single token is a table with one row.

Pure: no files, no clock, no HTTP.
"""

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

__all__ = ["Access", "Client", "ClientTable", "check_login", "check_token", "single_client", "token_digest"]

Access: TypeAlias = Literal["messages", "metrics", "all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A client of the server, with token and limits. None means no limit."""

    name: str
    digest: bytes = field(repr=False)
    """The token's SHA-256."""
    access: Access = "messages"
    """`messages`: all paths except `/metrics`. `metrics`: only that path. `all`: both."""
    max_requests: int | None = None
    """The maximum number of requests in progress."""
    tokens_per_day: int | None = None
    """The number of tokens of all kinds in a UTC day after which requests for messages are refused."""
    dollars_per_day: float | None = None
    """The same in US dollars, by the list prices."""

    @property
    def has_budget(self) -> bool:
        """True if the usage in a day is limited."""
        return self.tokens_per_day is not None or self.dollars_per_day is not None


class ClientTable:
    """The clients of a server."""

    def __init__(self, clients: Iterable[Client]) -> None:
        self.clients = (*clients,)
        if not self.clients:
            raise ValueError("there is no client: add a table [clients.NAME] with its token")
        owners: dict[bytes, str] = {}
        for client in self.clients:
            if (owner := owners.setdefault(client.digest, client.name)) != client.name:
                raise ValueError(f"clients.{owner} and clients.{client.name} have the same token")

    def find(self, tokens: Iterable[bytes]) -> Client | None:
        """Return the client whose token is among `tokens`. The time does not depend on the tokens' content."""
        digests = [token_digest(token) for token in tokens]
        matches = [client for client in self.clients for other in digests if hmac.compare_digest(client.digest, other)]
        return matches[0] if matches else None


def token_digest(token: bytes) -> bytes:
    """Return the stored form of a token. It needs no salt: a token is random, a password is not."""
    return hashlib.sha256(token).digest()


def check_token(token: str) -> None:
    """Check that a client can send the token in a header."""
    if not token or not token.isascii() or not token.isprintable() or token != token.strip():
        raise ValueError("the token must be a text of printable ASCII characters, without blanks around it")


def single_client(token: str) -> ClientTable:
    """Return the table of a server with a single token."""
    check_token(token)
    return ClientTable([Client(name="default", digest=token_digest(token.encode()), access="all")])


def check_login(table: ClientTable, *, is_subscription: bool) -> None:
    """Check that the clients may use the login: a subscription is for the owner alone."""
    names = [client.name for client in table.clients if client.access != "metrics"]
    if is_subscription and len(names) > 1:
        raise ValueError(
            f"the login is a subscription, which serves its owner alone, and there are {len(names)} clients "
            f"({', '.join(names)}): set ANTHROPIC_API_KEY, or use a gateway or a cloud provider"
        )
