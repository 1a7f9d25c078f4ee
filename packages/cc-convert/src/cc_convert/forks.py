"""Run jobs in this process and in its forks.

Forks start in milliseconds and share the parent memory, which no other kind of process does.
"""

import marshal
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TypeVar

_Job = TypeVar("_Job")

# Each job takes 4 bytes in a pipe, and all must fit in at once; the smallest pipes hold 64 KiB.
_MOST_JOBS = 8_000


def group_by_size(sizes: Sequence[tuple[str, int]], least: int) -> list[list[str]]:
    """Group names in order, each group with at least this total size; `share_jobs` takes any number of groups."""
    least = max(least, sum(size for _, size in sizes) // _MOST_JOBS + 1)
    groups: list[list[str]] = []
    room = 0
    for name, size in sizes:
        if room <= 0:
            groups.append([])
            room = least
        groups[-1].append(name)
        room -= size
    return groups


def share_jobs(
    jobs: Sequence[_Job],
    run: Callable[[_Job], None],
    processes: int,
    run_in_fork: Callable[[_Job], list[bytes]] | None = None,
) -> list[bytes]:
    """Run jobs in their order. Each process takes the next job when it is free.

    A fork that fails leaves its jobs undone. Forks exit after the last job, also if this process was killed.
    `run_in_fork`, by default `run`, runs a job in a fork; the result has the data that it returned in all forks.

    There are at most 8,000 jobs. Without `fork`, or with other threads, a single process runs them.
    """
    threading = sys.modules.get("threading")
    if not hasattr(os, "fork") or (threading is not None and threading.active_count() > 1):
        processes = 1
    queue, entry = os.pipe()
    os.write(entry, b"".join(job.to_bytes(4, "big") for job in range(len(jobs))))
    os.close(entry)
    forks: list[_Fork] = []
    try:
        # With fewer processes, if the system allows no more.
        with suppress(OSError):
            forks.extend(_Fork(queue, jobs, run_in_fork or run) for _ in range(min(processes, len(jobs)) - 1))
        for job in _next_jobs(queue, jobs):
            run(job)
        return [data for fork in forks for data in fork.results()]
    finally:
        os.close(queue)
        for fork in forks:
            fork.end()


def _next_jobs(queue: int, jobs: Sequence[_Job]) -> Iterable[_Job]:
    while number := os.read(queue, 4):
        yield jobs[int.from_bytes(number, "big")]


class _Fork:
    """A process that takes jobs from a queue, and sends all data when the queue is empty."""

    def __init__(self, queue: int, jobs: Sequence[_Job], run: Callable[[_Job], list[bytes] | None]) -> None:
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
            # No parent code may run here: no exit handlers, no flush of buffers.
            try:
                os.close(self._results)
                data = [result for job in _next_jobs(queue, jobs) for result in run(job) or ()]
                with os.fdopen(answer, "wb") as pipe:
                    marshal.dump(data, pipe)
            finally:
                os._exit(0)
        os.close(answer)

    def results(self) -> list[bytes]:
        """Return the data from all jobs; empty if the fork did not finish."""
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
