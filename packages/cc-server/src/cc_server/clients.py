"""The server clients: names, tokens and limits, from a private TOML file that is read again when it has changed."""

import asyncio
import hashlib
import hmac
import logging
import math
import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args

from cc_messages import ClaudeCodeTransport

logger = logging.getLogger(__name__)

Access: TypeAlias = Literal["messages", "metrics", "all"]

# A broken file is logged soon, also while there are no requests.
_POLL_SECONDS = 1.0

_NAME = re.compile(r"[A-Za-z0-9._@-]{1,64}")
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
# Type and least value.
_LIMITS: Mapping[str, tuple[type[int | float], int]] = {
    "max_requests": (int, 1), "tokens_per_day": (int, 0), "dollars_per_day": (float, 0),
}  # fmt: skip
_KEYS = ("token", "token_sha256", "access", "login", *_LIMITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A client of the server, with token and limits. None means no limit."""

    name: str
    digest: bytes = field(repr=False)
    """The token SHA-256."""
    access: Access = "messages"
    """`messages`: all paths except `/metrics`. `metrics`: only that path. `all`: both."""
    max_requests: int | None = None
    """The maximum number of requests in progress."""
    tokens_per_day: int | None = None
    """The number of tokens of all kinds in a UTC day after which requests for messages are refused."""
    dollars_per_day: float | None = None
    """The same in US dollars, by the list prices."""
    login: frozenset[tuple[str, str]] | None = field(default=None, repr=False)
    """The processes' environment variables for the login; None for the server login."""

    @property
    def has_budget(self) -> bool:
        """True if the usage in a day is limited."""
        return self.tokens_per_day is not None or self.dollars_per_day is not None


class ClientTable:
    """The clients of a server; with `needs_logins` none is served by the server login."""

    def __init__(self, clients: Iterable[Client], *, needs_logins: bool = False) -> None:
        self.clients: tuple[Client, ...] = (*clients,)
        self.needs_logins = needs_logins
        if not self.clients:
            raise ValueError("there is no client: add a table [clients.NAME] with its token")
        owners: dict[bytes, str] = {}
        for client in self.clients:
            if (owner := owners.setdefault(client.digest, client.name)) != client.name:
                raise ValueError(f"clients.{owner} and clients.{client.name} have the same token")

    def find(self, tokens: Iterable[bytes]) -> Client | None:
        """Return the client whose token is among `tokens`. The time does not depend on the tokens' content."""
        digests = [_digest(token) for token in tokens]
        matches = [
            client for client in self.clients for digest in digests if hmac.compare_digest(client.digest, digest)
        ]
        return matches[0] if matches else None


class ClientFile:
    """The clients of a file. The first reading can raise `ValueError`, as `check` can; later errors change nothing."""

    def __init__(self, path: Path, check: Callable[[ClientTable], None]) -> None:
        self._path, self._check = path, check
        self._last_stamp = self._stamp()
        self._table = self._read()

    def table(self) -> ClientTable:
        """Return the clients, after reading the file again if it has changed. Never raises."""
        if (stamp := self._stamp()) != self._last_stamp:
            self._last_stamp = stamp
            try:
                self._table = self._read()
            except ValueError as error:
                logger.error("The clients stay as they were: %s", error)
            else:
                logger.info("Read %s again: %d clients", self._path, len(self._table.clients))
        return self._table

    async def watch(self) -> None:
        """Read the file again whenever it has changed, until cancelled."""
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            self.table()

    def _stamp(self) -> tuple[int, ...]:
        """Return values that change with the file; none if there is no file."""
        try:
            status = self._path.stat()
        except OSError:
            return ()
        return (status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode)

    def _read(self) -> ClientTable:
        try:
            table = parse_clients(tomllib.loads(read_private(self._path)))
            self._check(table)
        except OSError as error:
            raise ValueError(f"the file with the clients cannot be read: {error}") from error
        except ValueError as error:  # also bytes that are not UTF-8, and TOML that is invalid
            raise ValueError(f"{self._path}: {error}") from error
        return table


def read_private(path: Path) -> str:
    """Return the text of a file to which only the owner has access.

    Raises:
        OSError: The file cannot be read.
        ValueError: Other users have access to it, or it is not a regular file with a text.
    """
    # Opening a named pipe would wait for a writer.
    at_once = getattr(os, "O_NONBLOCK", 0)
    with open(path, encoding="utf-8", opener=lambda path, flags: os.open(path, flags | at_once)) as file:
        mode = os.fstat(file.fileno()).st_mode
        if not stat.S_ISREG(mode):
            raise ValueError("it is not a regular file")
        check_private(mode)
        return file.read()


def check_private(mode: int) -> None:
    """Raise `ValueError` if others than the owner have access to a file with this mode."""
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ValueError(f"other users have access to it (mode {stat.S_IMODE(mode):o}): chmod 600 takes it away")


def parse_clients(document: Mapping[str, object]) -> ClientTable:
    """Return the clients of a TOML document."""
    _check_keys("", document, ("clients", "logins"))
    clients, sources = (_mapping(name, document.get(name, {})) for name in ("clients", "logins"))
    named: set[str] = set()
    values = {name: _login(f"logins.{name}", value, named) for name, value in sources.items()}
    # The processes inherit the server variables: those that logins name are empty for all other logins.
    logins = {name: frozenset({**dict.fromkeys(named, ""), **login}.items()) for name, login in values.items()}
    return ClientTable((_client(name, value, logins) for name, value in clients.items()), needs_logins=bool(logins))


def _login(place: str, value: object, named: set[str]) -> dict[str, str]:
    """Return a login's variables; add to `named` the server variables that they come from."""
    login = {name: _value(f"{place}.{name}", source, named) for name, source in _mapping(place, value).items()}
    if bad := [name for name, text in login.items() if not name or "=" in name or "\0" in name + text]:
        raise ValueError(f"{place}.{bad[0]!r}: a variable has a name without '=', and no NUL character")
    return login


def _value(place: str, source: object, named: set[str]) -> str:
    """Return the value of a variable: a text, or the content of another variable or of a private file."""
    try:
        match [*cast(Mapping[str, object], source).items()] if isinstance(source, Mapping) else source:
            case str(text):
                return text
            case [("variable", str(name))]:
                named.add(name)
                return os.environ[name]
            case [("file", str(path))]:
                return read_private(Path(path)).strip()
            case _:
                raise ValueError('must be a text, { variable = "NAME" } or { file = "PATH" }')
    except KeyError as error:
        raise ValueError(f"{place}: there is no environment variable {error.args[0]}") from error
    except (OSError, ValueError) as error:
        raise ValueError(f"{place}: {error}") from error


def _client(name: str, value: object, logins: Mapping[str, frozenset[tuple[str, str]]]) -> Client:
    place = f"clients.{name}"
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"clients.{name!r}: a name has 1 to 64 letters, digits and characters of ._@-")
    fields = _mapping(place, value)
    _check_keys(f"{place}.", fields, _KEYS)
    login = fields.get("login")
    if login is not None and not (isinstance(login, str) and login in logins):
        raise ValueError(f"{place}.login: must be the name of a table in logins, not {login!r}")
    access = fields.get("access", "messages")
    if access not in get_args(Access):
        raise ValueError(f"{place}.access: must be one of {', '.join(get_args(Access))}, not {access!r}")
    limits: dict[str, Any] = {}
    for key, (kind, least) in _LIMITS.items():
        if (number := fields.get(key)) is not None:
            if not isinstance(number, int | kind) or isinstance(number, bool) or not least <= number < math.inf:
                kinds = "a whole number" if kind is int else "a number"
                raise ValueError(f"{place}.{key}: must be {kinds} from {least} on, not {number!r}")
            limits[key] = kind(number)
    variables = None if login is None else logins[login]
    return Client(name=name, digest=_digest_of(place, fields), access=cast("Access", access), login=variables, **limits)


def _digest_of(place: str, fields: Mapping[str, object]) -> bytes:
    match fields.get("token"), fields.get("token_sha256"):
        case str(token), None:
            return _checked_digest(token, f"{place}.token: ")
        case None, str(text) if _SHA256.fullmatch(text):
            return bytes.fromhex(text)
        case None, str():
            raise ValueError(f"{place}.token_sha256: must be the SHA-256 of the token, 64 hexadecimal digits")
        case _:
            raise ValueError(f"{place}: needs either token or token_sha256, a text")


def _mapping(place: str, value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ValueError(f"{place}: must be a table")
    return cast("dict[str, object]", value)


def _check_keys(place: str, fields: Mapping[str, object], keys: tuple[str, ...]) -> None:
    for key in fields:
        if key not in keys:
            similar_keys = get_close_matches(key, keys, 1)
            advice = f"did you mean {similar_keys[0]}?" if similar_keys else f"the keys are {', '.join(keys)}"
            raise ValueError(f"{place}{key}: there is no such key; {advice}")


def single_client(token: str) -> ClientTable:
    """Return the table of a server with a single token."""
    return ClientTable([Client(name="default", digest=_checked_digest(token), access="all")])


class LoginTransports:
    """The transports with the clients' logins, which share the pool of `own`, the server transport."""

    def __init__(self, own: ClaudeCodeTransport) -> None:
        self.own = own
        self._by_login: dict[frozenset[tuple[str, str]], ClaudeCodeTransport] = {}

    def transport(self, client: Client) -> ClaudeCodeTransport:
        """Return the transport that answers a client's requests."""
        if client.login is None:
            return self.own
        if client.login not in self._by_login:
            self._by_login[client.login] = self.own.with_login(dict(client.login))
        return self._by_login[client.login]

    def accept(self, table: ClientTable) -> None:
        """Check that the clients may use their logins: a subscription is for the owner alone; end those that left."""
        for name, login in ((client.name, client.login) for client in table.clients if client.login is not None):
            if self.own.with_login(dict(login)).uses_subscription:
                raise ValueError(f"the login of clients.{name} must be an API key, a gateway or a cloud provider")
        names = [client.name for client in table.clients if client.access != "metrics"]
        if self.own.uses_subscription and not table.needs_logins and len(names) > 1:
            raise ValueError(
                f"the login is a subscription, which serves its owner alone, and there are {len(names)} clients "
                f"({', '.join(names)}): set ANTHROPIC_API_KEY, or use a gateway or a cloud provider"
            )
        for login in self._by_login.keys() - {client.login for client in table.clients}:
            self._by_login.pop(login).end_login()


def _digest(token: bytes) -> bytes:
    """Return the stored form of a token. It needs no salt: a token is random, a password is not."""
    return hashlib.sha256(token).digest()


def _checked_digest(token: str, place: str = "") -> bytes:
    """Return the digest of a token that a client can send in a header."""
    if not token or not token.isascii() or not token.isprintable() or token != token.strip():
        raise ValueError(f"{place}the token must be a text of printable ASCII characters, without blanks around it")
    return _digest(token.encode())
