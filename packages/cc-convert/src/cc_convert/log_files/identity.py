"""Tell answers apart that have the same message id.

The API never repeats a message id, but gateways and local servers number answers from 1 in each session, or give all
answers one id. Then the other things that are known of an answer decide.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from .rows import ADVICE, DECLINED, FileScan, Row

# Rows with the same id, session and input, among which a row's copy is looked for.
_MOST_SIMILAR = 50


def is_same_answer(row: Row, candidate: Row) -> bool:
    """Return true if two records with the same message id are about one answer.

    A record is copied with its `uuid`, and a request id decides, but for a sub-agent's file, which repeats a parent
    answer under another request id. Without a request id, the input of an answer decides, or that a stream grew.
    """
    if row.uuid and row.uuid == candidate.uuid:
        return True
    if row.request_id and candidate.request_id:
        is_replay = row.agent != candidate.agent and _input_of(row) == _input_of(candidate)
        return row.request_id == candidate.request_id or is_replay
    if row.session != candidate.session:
        return False
    return _input_of(row) == _input_of(candidate) or (not (row.final and candidate.final) and _grew(row, candidate))


def _input_of(row: Row) -> tuple[int, int, int]:
    return row.input, row.cache_read, row.cache_write_5m + row.cache_write_1h


def _grew(row: Row, candidate: Row) -> bool:
    smaller, larger = sorted((row, candidate), key=lambda row: row.tokens)
    return all(less <= more for less, more in zip(_input_of(smaller), _input_of(larger), strict=True))


def key_beside(row: Row) -> str:
    """Return the key for an answer whose message id another answer has, too."""
    return f"{row.message_id}:{row.request_id or row.uuid}"


def separate_answers(scans: list[FileScan]) -> list[FileScan]:
    """Give different answers in all files different keys, and copies of an answer the same key."""
    clashing = _clashing_ids(scans)
    if not clashing:
        return scans
    groups = _Groups()
    for scan in scans:
        for row in scan.rows:
            if row.message_id in clashing and _is_whole(row):
                groups.add(row)
    return [_with_keys(scan, keys) if (keys := groups.keys_in(scan)) else scan for scan in scans]


def _is_whole(row: Row) -> bool:
    return row.kind == "request"


def _clashing_ids(scans: Iterable[FileScan]) -> set[str]:
    """Return the message ids that several answers have."""
    seen: dict[str, Row] = {}
    clashing: set[str] = set()
    for scan in scans:
        own_rows = {row.key: row for row in scan.rows}
        clashing |= {
            own_rows[key].message_id
            for key in own_rows.keys() & seen.keys()
            if _is_whole(own_rows[key]) and not is_same_answer(seen[key], own_rows[key])
        }
        clashing |= {row.message_id for key, row in own_rows.items() if key != row.message_id and _is_whole(row)}
        seen |= own_rows
    return clashing - {""}


class _Groups:
    """Groups of rows about one answer each."""

    def __init__(self) -> None:
        self._groups: list[list[Row]] = []
        self._by_id: dict[tuple[str, str], int] = {}
        self._numbers_by_input: dict[tuple[object, ...], list[int]] = defaultdict(list)

    def add(self, row: Row) -> None:
        """Add a row to the group with its answer."""
        numbers = self._numbers_by_input[row.message_id, row.session, _input_of(row)]
        number = self._number_of(row)
        if number is None:
            number = next(
                (one for one in numbers[:_MOST_SIMILAR] if is_same_answer(self._groups[one][0], row)), len(self._groups)
            )
        if number == len(self._groups):
            self._groups.append([])
            numbers.append(number)
        self._groups[number].append(row)
        for identity in (row.uuid, row.request_id):
            if identity:
                self._by_id.setdefault((row.message_id, identity), number)

    def _number_of(self, row: Row) -> int | None:
        number = self._by_id.get((row.message_id, row.uuid)) if row.uuid else None
        return self._by_id.get((row.message_id, row.request_id)) if number is None and row.request_id else number

    def keys_in(self, scan: FileScan) -> Mapping[str, str]:
        """Return the new keys of a file's rows, by the old ones; the same whichever of the answer files are read."""
        keys: dict[str, str] = {}
        for row in scan.rows:
            number = self._number_of(row) if _is_whole(row) else None
            if number is not None:
                keys[row.key] = min((not one.request_id, key_beside(one)) for one in self._groups[number])[1]
        return keys


def _with_keys(scan: FileScan, keys: Mapping[str, str]) -> FileScan:
    def key_of(key: str) -> str:
        for mark in (DECLINED, ADVICE):
            request, found, number = key.partition(mark)
            if found:
                return f"{keys.get(request, request)}{mark}{number}"
        return keys.get(key, key)

    return scan._replace(
        rows=[row._replace(key=key_of(row.key)) for row in scan.rows],
        origins={key_of(key): session for key, session in scan.origins.items()},
        ledgers=[ledger._replace(keys=tuple(map(key_of, ledger.keys))) for ledger in scan.ledgers],
        open_keys=tuple(map(key_of, scan.open_keys)),
    )
