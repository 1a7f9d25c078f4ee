"""Find the session that made a request which several sessions' transcripts repeat, and the files of each session.

A fork begins with copies of its parent's answers. The CLI marks them since 2.1.326, and the SDK's `fork_session()`
names the parent. In other logs, copies look like originals; there the session that began first made the request.
"""

from collections.abc import Iterable

from ..log_files.identity import separate_answers
from ..log_files.rows import FileScan, Row

_NEVER = "~"  # after all times


def _disputed_keys(scans: Iterable[FileScan]) -> set[str]:
    """Return the keys of requests that different files assign to different sessions."""
    sessions: dict[str, str] = {}
    disputed: set[str] = set()
    for scan in scans:
        scan_sessions = {row.key: row.session for row in scan.rows}
        disputed |= {key for key in scan_sessions.keys() & sessions.keys() if scan_sessions[key] != sessions[key]}
        sessions |= scan_sessions
    return disputed


def assign_sessions(scans: list[FileScan]) -> list[FileScan]:
    """Assign each request to one session in all files; files with copies note it in `origins`."""
    scans = separate_answers(scans)
    disputed = _disputed_keys(scans)
    if not disputed:
        return scans
    owners = _owners(scans, disputed)
    return [_set_owners(scan, owners) if any(row.key in owners for row in scan.rows) else scan for scan in scans]


def _owners(scans: list[FileScan], disputed: set[str]) -> dict[str, str]:
    """Return for each request, among the sessions that claim it in their own files, the session that began first."""
    ranks = _ranks(scans)
    sessions_by_key: dict[str, set[str]] = {}
    named: dict[str, str] = {}
    for scan in scans:
        for row in scan.rows:
            if row.key in disputed and row.key in scan.origins:
                named[row.key] = row.session
            elif row.key in disputed:
                sessions_by_key.setdefault(row.key, set()).add(row.session)
    return named | {key: min(sessions, key=lambda session: ranks[session]) for key, sessions in sessions_by_key.items()}


def _ranks(scans: list[FileScan]) -> dict[str, tuple[str, float, str]]:
    """Return the sessions' order by start: first time in a file, then running time of processes until a total."""
    ranks: dict[str, tuple[str, float, str]] = {}
    for scan in scans:
        shortest: dict[str, float] = {}
        for ledger in scan.ledgers:
            if ledger.duration is not None:
                shortest[ledger.session] = min(shortest.get(ledger.session, ledger.duration), ledger.duration)
        for session in {row.session for row in scan.rows if row.key not in scan.origins}:
            rank = (scan.began or _NEVER, shortest.get(session, float("inf")), session)
            ranks[session] = min(ranks.get(session, rank), rank)
    return ranks


def _set_owners(scan: FileScan, owners: dict[str, str]) -> FileScan:
    rows: list[Row] = []
    origins = {**scan.origins}
    parent = ""
    for row in scan.rows:
        owner = owners.get(row.key, row.session)
        if owner != row.session or row.key in origins:
            origins[row.key] = parent = owner
            rows.append(row._replace(session=owner, parent=""))
        else:
            rows.append(row._replace(parent=row.parent or parent))
    # Copies without a mark are by an older CLI, after those by the SDK.
    is_sdk_fork = scan.is_sdk_fork and len(origins) == len(scan.origins)
    return scan._replace(rows=rows, origins=origins, is_sdk_fork=is_sdk_fork)


def places_of(scans: list[FileScan]) -> dict[str, list[str]]:
    """Return the files in which each session made requests."""
    places: dict[str, list[str]] = {}
    for scan in scans:
        for session in dict.fromkeys(row.session for row in scan.rows):
            places.setdefault(session, []).append(scan.path)
    return places
