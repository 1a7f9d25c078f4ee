"""The file with the clients: TOML, private, and read again when it has changed."""

import asyncio
import logging
import math
import os
import re
import stat
import tomllib
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar, cast, get_args

from .clients import Access, Client, ClientTable, check_token, token_digest

__all__ = ["ClientFile", "ClientFileError", "parse_clients"]

logger = logging.getLogger(__name__)

# A broken file is logged soon, also while there are no requests.
_POLL_SECONDS = 1.0

_NAME = re.compile(r"[A-Za-z0-9._@-]{1,64}")
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_KEYS = ("token", "token_sha256", "access", "max_requests", "tokens_per_day", "dollars_per_day")

N = TypeVar("N", int, float)


class ClientFileError(ValueError):
    """Raised if the file with the clients cannot be used."""


class ClientFile:
    """The clients of a file. If the file is broken later, the clients stay as they were.

    Args:
        path: The file.
        check: Called with the clients whenever the file was read; a `ValueError` refuses them.
    """

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
            except ClientFileError as error:
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
            with open(self._path, "rb", opener=_open_at_once) as file:
                mode = os.fstat(file.fileno()).st_mode
                if not stat.S_ISREG(mode):
                    raise ValueError("it is not a regular file")
                if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
                    permissions = stat.S_IMODE(mode)
                    raise ValueError(f"other users have access to it (mode {permissions:o}): chmod 600 takes it away")
                table = parse_clients(tomllib.load(file))
            self._check(table)
        except OSError as error:
            raise ClientFileError(f"the file with the clients cannot be read: {error}") from error
        except ValueError as error:  # also bytes that are not UTF-8, and TOML that is invalid
            raise ClientFileError(f"{self._path}: {error}") from error
        return table


def _open_at_once(path: str, flags: int) -> int:
    # Opening a named pipe would wait for a writer.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def parse_clients(document: Mapping[str, object]) -> ClientTable:
    """Return the clients of a TOML document."""
    _check_keys("", document, ("clients",))
    return ClientTable(_client(name, fields) for name, fields in _table("clients", document.get("clients", {})).items())


def _client(name: str, value: object) -> Client:
    place = f"clients.{name}"
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"clients.{name!r}: a name has 1 to 64 letters, digits and characters of ._@-")
    fields = _table(place, value)
    _check_keys(f"{place}.", fields, _KEYS)
    access = fields.get("access", "messages")
    if access not in get_args(Access):
        raise ValueError(f"{place}.access: must be one of {', '.join(get_args(Access))}, not {access!r}")
    return Client(
        name=name,
        digest=_digest(place, fields),
        access=cast("Access", access),
        max_requests=_limit(place, fields, "max_requests", int, least=1),
        tokens_per_day=_limit(place, fields, "tokens_per_day", int),
        dollars_per_day=_limit(place, fields, "dollars_per_day", float),
    )


def _digest(place: str, fields: Mapping[str, object]) -> bytes:
    match fields.get("token"), fields.get("token_sha256"):
        case str(token), None:
            try:
                check_token(token)
            except ValueError as error:
                raise ValueError(f"{place}.token: {error}") from error
            return token_digest(token.encode())
        case None, str(text) if _SHA256.fullmatch(text):
            return bytes.fromhex(text)
        case None, str():
            raise ValueError(f"{place}.token_sha256: must be the SHA-256 of the token, 64 hexadecimal digits")
        case _:
            raise ValueError(f"{place}: needs either token or token_sha256, a text")


def _limit(place: str, fields: Mapping[str, object], key: str, kind: type[N], *, least: int = 0) -> N | None:
    value = fields.get(key)
    if value is None:
        return None
    if not isinstance(value, int | kind) or isinstance(value, bool) or not least <= value < math.inf:
        number = "a whole number" if kind is int else "a number"
        raise ValueError(f"{place}.{key}: must be {number} from {least} on, not {value!r}")
    return kind(value)


def _table(place: str, value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ValueError(f"{place}: must be a table")
    return cast("dict[str, object]", value)


def _check_keys(place: str, fields: Mapping[str, object], keys: tuple[str, ...]) -> None:
    for key in fields:
        if key not in keys:
            near = get_close_matches(key, keys, 1)
            advice = f"did you mean {near[0]}?" if near else f"the keys are {', '.join(keys)}"
            raise ValueError(f"{place}{key}: there is no such key; {advice}")
