"""The table of differences between direct requests and requests through Claude Code, by login: made, and checked."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from both_ways import plain_ids
from cc_loopback import Call, Login

__all__ = ["PAGE", "Differences", "differences_between"]

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "request-differences.md"
LOGINS: tuple[Login, ...] = ("api-key", "oauth", "vertex", "bedrock", "foundry")
_BEGIN, _END = "<!-- table: written by a test -->\n", "<!-- end of table -->\n"
_YES = "differs"
_COLUMNS = ("header or body field", "API key", "OAuth token", "Vertex AI", "Amazon Bedrock", "Microsoft Foundry", "why")
_HEAD = f"| {' | '.join(_COLUMNS)} |\n{'|---' * len(_COLUMNS)}|\n"
# Headers of the HTTP connection, which have no meaning for the API, and of an official client's library.
_CONNECTION = frozenset({"accept-encoding", "connection", "content-length", "host", "transfer-encoding"})
_LIBRARY = "x-stainless-"
# New in each run.
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def differences_between(direct: Call, through: Call) -> set[str]:
    """Return the names of headers and of body fields whose values differ, as the table has them."""
    names = {f"`{_LIBRARY}*`" if name.startswith(_LIBRARY) else f"`{name}`" for name in _headers(direct, through)}
    return names | {f"`{name}` in the body" for name in _fields(direct.body or {}, through.body or {})}


def _headers(direct: Call, through: Call) -> Iterable[str]:
    for name in {*direct.headers, *through.headers} - _CONNECTION:
        one, other = (_UUID.sub("id", call.headers.get(name, "")) for call in (direct, through))
        if one != other:
            yield name


def _fields(direct: Mapping[str, Any], through: Mapping[str, Any]) -> Iterable[str]:
    for name in {*direct, *through}:
        if plain_ids(direct.get(name)) != plain_ids(through.get(name)) or (name in direct) != (name in through):
            yield name


class Differences:
    """The rows of the page: the logins with a difference, and the reason, by name."""

    def __init__(self) -> None:
        self.before, table, self.after = _parts(PAGE.read_text("utf-8"))
        cells = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in table.splitlines()[2:]]
        self.reasons = {name: reason for name, *_, reason in cells}
        self.logins = {
            name: {login for login, mark in zip(LOGINS, marks, strict=True) if mark == _YES}
            for name, *marks, _ in cells
        }

    def unnamed(self, login: Login, names: set[str]) -> list[str]:
        """Return the differences that the table lacks."""
        return sorted(name for name in names if login not in self.logins.get(name, ()))

    def write(self, observed: Mapping[Login, set[str]]) -> None:
        """Write the table with the observed differences; reasons stay."""
        names: Sequence[str] = sorted({name for group in observed.values() for name in group}, key=_order)
        rows = [
            [name, *(_YES if name in observed.get(login, ()) else "" for login in LOGINS), self.reasons.get(name, "?")]
            for name in names
        ]
        table = _HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows)
        PAGE.write_text(f"{self.before}{_BEGIN}\n{table}\n{_END}{self.after}", "utf-8")


def _parts(page: str) -> tuple[str, str, str]:
    before, _, rest = page.partition(_BEGIN)
    table, _, after = rest.partition(_END)
    return before, table.strip() + "\n", after


def _order(name: str) -> tuple[bool, str]:
    return "in the body" in name, name
