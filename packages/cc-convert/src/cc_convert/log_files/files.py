"""Read log files to scans: from the cache or from disk, with several processes if faster."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from io import BytesIO, FileIO

from ..forks import group_by_size, share_jobs
from .cache import Cache, Identity, checksum_in, dump_scan, identity_of, load_scan
from .fields import fast_decoder
from .rows import FileScan, Row, unreadable
from .scan import scan_stream
from .sources import STDIN, agent_type_of, is_packed, open_log, workflow_of

Progress = Callable[[int, int], None]
"""Callback with bytes done and bytes in all."""

# A second process costs some milliseconds; the first process reads about this many bytes in this time.
_WORTH_A_PROCESS = 16_000_000
# Opening a file takes as long as reading this many bytes.
_FILE = 8_000
# Small enough that all processes end at about the same time.
_JOB = 2_000_000
# The agent type that Claude Code gives to a workflow's agents that have no type of their own.
_WORKFLOW_AGENT = "workflow-subagent"


def read_file(
    path: str, *, earlier_scan: FileScan | None = None, strict: bool = False, with_checksum: bool = False
) -> FileScan:
    """Read a log; after an earlier scan, only new lines. An unreadable file is reported as a problem, not an error.

    With `strict`, every line is decoded. With `with_checksum`, the scan has a checksum for a cache.
    """
    try:
        with open_log(path, earlier_scan.offset if earlier_scan else 0) as stream:
            scan = scan_stream(stream, path, earlier_scan=earlier_scan, strict=strict)
            if any(row.agent and not row.agent_type for row in scan.rows) and (kind := agent_type_of(path)):
                scan = scan._replace(rows=[row._replace(agent_type=row.agent_type or kind) for row in scan.rows])
            if workflow := workflow_of(path):
                scan = scan._replace(rows=[_of_workflow(row, workflow) for row in scan.rows])
            if with_checksum and isinstance(stream, FileIO | BytesIO):
                earlier_part = (earlier_scan.offset, earlier_scan.checksum) if earlier_scan else ()
                return scan._replace(checksum=checksum_in(stream, scan.offset, *earlier_part))
            return scan
    except OSError as error:
        return unreadable(path, error)


def _of_workflow(row: Row, workflow: str) -> Row:
    return row._replace(agent_type=f"workflow {workflow}") if row.agent_type == _WORKFLOW_AGENT else row


def read_files(
    paths: Sequence[str],
    *,
    cache: Cache | None = None,
    processes: int = 1,
    strict: bool = False,
    progress: Progress | None = None,
    identities: Mapping[str, Identity] | None = None,
) -> list[FileScan]:
    """Read logs; the results come in the same order as the paths.

    With `strict`, every line is decoded, and the cache is only written. `identities` has those from `identities_of`, if
    they are known.
    """
    identities = identities_of(paths) if identities is None else identities
    done = {path: read_file(path, strict=strict) for path in paths if path == STDIN}
    partial: dict[str, FileScan | None] = {}
    for path, identity in identities.items():
        entry = cache.get(path, identity) if cache and not strict else None
        if entry:
            scan, is_complete = entry
            if scan and is_complete:
                done[path] = scan
            else:
                partial[path] = scan
    if cache:
        cache.close()
    sizes = {path: identities[path].size if path in identities else 0 for path in paths if path not in done}
    sizes |= {path: max(0, sizes[path] - scan.offset) for path, scan in partial.items() if scan}

    def scan_file(path: str) -> FileScan:
        return read_file(path, earlier_scan=partial.get(path), strict=strict, with_checksum=path in partial)

    scans, packed = _read_all(sizes, scan_file, processes, progress)
    # Lines written during the scan belong to the next scan: the identity is from before.
    new_scans = {
        path: (identity, scan, packed.get(path, b""))
        for path, scan in scans.items()
        if (identity := identities.get(path)) and scan.offset and (scan.size <= identity.size or _is_packed(path))
    }
    if cache and new_scans:
        cache.put(new_scans)
    done |= scans
    return [done[path] for path in paths]


def _is_packed(path: str) -> bool:
    try:
        return is_packed(path)
    except OSError:  # deleted meanwhile
        return False


def identities_of(paths: Iterable[str]) -> dict[str, Identity]:
    """Return the accessible files' identities."""
    identities: dict[str, Identity] = {}
    for path in paths:
        if path != STDIN:
            try:
                identities[path] = identity_of(path)
            except OSError:
                continue  # reported when it is read
    return identities


def _read_all(
    sizes: Mapping[str, int], scan: Callable[[str], FileScan], processes: int, progress: Progress | None
) -> tuple[dict[str, FileScan], dict[str, bytes]]:
    """Read files, in this process and in forks; return the scans, and those by forks as bytes, too."""
    scans, packed = dict[str, FileScan](), dict[str, bytes]()
    done, total = 0, sum(sizes.values())

    def take(result: FileScan) -> None:
        nonlocal done
        scans[result.path] = result
        done += sizes[result.path]
        if progress:
            progress(done, total)

    def run(paths: Iterable[str]) -> None:
        for path in paths:
            take(scan(path))

    def run_in_fork(paths: Iterable[str]) -> list[bytes]:
        # Packed job by job, so that no process waits at the end while another one packs.
        return [dump_scan(scan(path)) for path in paths]

    # Large files first, small ones grouped.
    costs = [(path, size + _FILE) for path, size in sorted(sizes.items(), key=lambda item: -item[1])]
    processes = min(processes, sum(cost for _, cost in costs) // _WORTH_A_PROCESS + 1)
    if processes > 1:
        # Once for all processes, not in each process.
        fast_decoder()
    for content in share_jobs(group_by_size(costs, _JOB), run, processes, run_in_fork):
        result = load_scan(content)
        packed[result.path] = content
        take(result)
    # A killed fork's results are missing.
    run([path for path in sizes if path not in scans])
    return scans, packed
