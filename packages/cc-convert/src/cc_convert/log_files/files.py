"""Read log files to scans: from the cache or from disk, with several processes if faster."""

import marshal
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from io import FileIO

from ..rows import FileScan, Problem
from .cache import Cache, Identity, dump_scan, edges_in, identity_of, load_scan
from .decode import fast_decoders
from .scan import scan_stream
from .sources import STDIN, open_log

__all__ = ["Progress", "read_file", "read_files"]

Progress = Callable[[int, int], None]
"""Callback with bytes done and bytes in all."""

# A second process costs some milliseconds; the first one reads about this many bytes in this time.
_WORTH_A_PROCESS = 16_000_000
# Opening a file takes as long as reading this many bytes.
_FILE = 8_000
# Small enough that all processes end at about the same time.
_JOB = 2_000_000
# Each job takes 4 bytes of a pipe, and all must fit in at once; the smallest pipes hold 64 KiB.
_MOST_JOBS = 8_000


def read_file(path: str, *, before: FileScan | None = None, strict: bool = False, with_edges: bool = False) -> FileScan:
    """Read one log. An unreadable file is reported as a problem, not an error.

    Args:
        path: The file, or `-`.
        before: Earlier scan of the log; only new lines are read.
        strict: Decode every line.
        with_edges: Note checksums of the file, for a cache.
    """
    try:
        with open_log(path, before.offset if before else 0) as stream:
            scan = scan_stream(stream, path, before=before, strict=strict)
            if with_edges and isinstance(stream, FileIO):
                return scan._replace(edges=edges_in(stream, scan.offset))
            return scan
    except OSError as error:
        problem = Problem(path, -1, error.strerror or type(error).__name__, True)
        return FileScan(path, [], [], [problem], 0, 0, False, (), "", {}, {})


def read_files(
    paths: Sequence[str],
    *,
    cache: Cache | None = None,
    processes: int = 1,
    strict: bool = False,
    progress: Progress | None = None,
) -> list[FileScan]:
    """Read logs; the results come in the order of the paths.

    Args:
        paths: Files.
        cache: Cache to read first and to write to.
        processes: Largest number of processes. More than one needs `fork` and no further threads.
        strict: Decode every line. The cache is then only written.
        progress: Called at intervals.
    """
    identities = _identities(paths)
    done = {path: read_file(path, strict=strict) for path in paths if path == STDIN}
    started: dict[str, FileScan] = {}
    for path, identity in identities.items():
        known = cache.get(path, identity) if cache and not strict else None
        if known:
            (done if known[1] else started)[path] = known[0]
    if cache:
        cache.close()
    waiting = [path for path in paths if path not in done]
    sizes = {path: _left(identities.get(path), started.get(path)) for path in waiting}
    reader = _Reader(sizes, started, strict=strict, with_edges=cache is not None, progress=progress)
    read = reader.read(_useful(processes, sum(sizes.values()) + _FILE * len(sizes)))
    # Lines written during the scan belong to the next one: the identity is from before.
    new = {
        path: (identity, result, reader.packed.get(path, b""))
        for path, result in read.items()
        if (identity := identities.get(path))
        and result.offset
        and (result.size <= identity.size or result.edges == (0, 0))
    }
    if cache and new:
        cache.put(new)
    done |= read
    return [done[path] for path in paths]


def _identities(paths: Iterable[str]) -> dict[str, Identity]:
    """Return the identities of the accessible files."""
    found: dict[str, Identity] = {}
    for path in paths:
        if path != STDIN:
            try:
                found[path] = identity_of(path)
            except OSError:
                continue  # reported when it is read
    return found


def _left(identity: Identity | None, before: FileScan | None) -> int:
    return max(0, identity.size - (before.offset if before else 0)) if identity else 0


def _useful(processes: int, size: int) -> int:
    threading = sys.modules.get("threading")
    if not hasattr(os, "fork") or (threading is not None and threading.active_count() > 1):
        return 1
    return max(1, min(processes, size // _WORTH_A_PROCESS + 1))


class _Reader:
    """Reads files, in this process and in others, and reports its progress."""

    def __init__(
        self,
        sizes: dict[str, int],
        started: dict[str, FileScan],
        *,
        strict: bool,
        with_edges: bool,
        progress: Progress | None,
    ) -> None:
        self._sizes, self._started, self._progress = sizes, started, progress
        self._strict, self._with_edges = strict, with_edges
        self._done: dict[str, FileScan] = {}
        self.packed: dict[str, bytes] = {}
        """The scans by other processes, as they sent them."""
        self._read, self._all = 0, sum(sizes.values())

    def read(self, processes: int) -> dict[str, FileScan]:
        """Read all files."""
        jobs = _jobs(list(self._sizes), self._sizes)
        if processes > 1 and len(jobs) > 1:
            self._share(jobs, processes - 1)
        # The results of a killed helper are missing.
        for job in jobs:
            self._work([path for path in job if path not in self._done])
        return self._done

    def scan(self, path: str) -> FileScan:
        """Read one file."""
        return read_file(path, before=self._started.get(path), strict=self._strict, with_edges=self._with_edges)

    def _work(self, paths: list[str]) -> None:
        for path in paths:
            self._take(self.scan(path))

    def _take(self, result: FileScan) -> None:
        self._done[result.path] = result
        self._read += self._sizes[result.path]
        if self._progress:
            self._progress(self._read, self._all)

    def _share(self, jobs: list[list[str]], helpers: int) -> None:
        # Once for all processes, not in each of them.
        fast_decoders()
        queue, fill = os.pipe()
        os.write(fill, b"".join(job.to_bytes(4, "big") for job in range(len(jobs))))
        os.close(fill)
        started: list[_Helper] = []
        try:
            # With fewer processes, if the system allows no more.
            with suppress(OSError):
                started.extend(_Helper(queue, jobs, self.scan) for _ in range(helpers))
            while number := os.read(queue, 4):
                self._work(jobs[int.from_bytes(number, "big")])
            for helper in started:
                for packed in helper.results():
                    result = load_scan(packed)
                    self.packed[result.path] = packed
                    self._take(result)
        finally:
            os.close(queue)
            for helper in started:
                helper.end()


def _jobs(paths: list[str], sizes: dict[str, int]) -> list[list[str]]:
    """Return large files first, small ones grouped."""
    enough = max(_JOB, sum(sizes.values()) // _MOST_JOBS)
    jobs: list[list[str]] = []
    held = enough
    for path in sorted(paths, key=lambda path: -sizes[path]):
        if held >= enough:
            jobs.append([])
            held = 0
        jobs[-1].append(path)
        held += sizes[path] + _FILE
    return jobs


class _Helper:
    """A forked process that takes jobs from a queue, and sends the results when the queue is empty."""

    def __init__(self, queue: int, jobs: list[list[str]], scan: Callable[[str], FileScan]) -> None:
        if sys.platform == "win32":
            raise NotImplementedError("Windows cannot fork")
        self._results, answer = os.pipe()
        try:
            self._process = os.fork()
        except OSError:
            os.close(self._results)
            os.close(answer)
            raise
        if self._process == 0:
            # No code of the parent may run here: no exit handlers, no flush of its buffers.
            status = 1
            try:
                os.close(self._results)
                # Packed job by job, so that no process waits at the end for all of another one's work.
                packed: list[bytes] = []
                while number := os.read(queue, 4):
                    packed += [dump_scan(scan(path)) for path in jobs[int.from_bytes(number, "big")]]
                with os.fdopen(answer, "wb") as pipe:
                    marshal.dump(packed, pipe)
                status = 0
            except BaseException:  # The parent does the unfinished work.
                status = 1
            finally:
                os._exit(status)
        os.close(answer)

    def results(self) -> list[bytes]:
        """Return its scans, packed; none if it did not finish."""
        try:
            with os.fdopen(self._results, "rb") as pipe:
                self._results = -1
                # `marshal.load` reads value by value and takes ten times as long.
                return marshal.loads(pipe.read())
        except (EOFError, ValueError, TypeError):
            return []

    def end(self) -> None:
        """End the process if it is still running."""
        if sys.platform == "win32":
            raise NotImplementedError("Windows cannot fork")
        if self._results >= 0:
            import signal  # slow to import, and seldom needed

            os.close(self._results)
            os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)
