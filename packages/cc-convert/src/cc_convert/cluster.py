"""Read logs on a Dask cluster: for logs that are too large for one machine, on any store that fsspec supports.

Workers read files and send back rows; the same code as for local files computes the sums here. If a worker dies,
another worker reads its files again.
"""

import os
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from typing import Any

from .extras import need
from .forks import group_by_size
from .log_files.cache import dump_scan, load_scan
from .log_files.rows import unreadable
from .log_files.scan import scan_stream
from .log_files.sources import ENDINGS, LogsNotFoundError
from .log_files.streams import Blocks, Readable, begins_packed, open_packed
from .log_files.titles import Titles, best_titles, find_titles
from .logs import Logs, merge

__all__ = ["connect", "read_logs_on", "read_titles_on", "scan_urls", "titles_of_urls"]

# Large enough to justify a message to a worker, small enough to be read again if the worker dies.
_TASK = 32_000_000
# Workers come and go; a file that kills every reader must not be retried for ever.
_RETRIES = 4


def connect(address: str) -> Any:
    """Return a client for the scheduler at an address.

    Raises:
        MissingExtraError: Dask is not installed.
        OSError: No scheduler answers there.
    """
    return need("distributed", "Reading on a cluster").Client(address)


def read_logs_on(client: Any, sources: Iterable[str], *, storage_options: Mapping[str, Any] | None = None) -> Logs:
    """Read logs as `cc_convert.logs.read_logs` does, on a cluster.

    Args:
        client: A `distributed.Client`. The workers need cc-convert with the extra `dask`, and access to the store.
        sources: URLs: files, folders or patterns, such as `s3://bucket/logs`; all in the same store.
        storage_options: fsspec's options for the store.

    Returns:
        The same result as for local files.

    Raises:
        LogsNotFoundError: A source does not exist.
        MissingExtraError: The extra `dask` is not installed.
    """
    return merge(map(load_scan, _run(client, scan_urls, sources, storage_options)))


def scan_urls(urls: Sequence[str], storage_options: Mapping[str, Any] | None = None) -> list[bytes]:
    """Read files in order, on a worker. `cache.load_scan` unpacks the results."""
    fsspec = need("fsspec", "Reading from a store")
    scans: list[bytes] = []
    for url in urls:
        try:
            with fsspec.open(url, "rb", **(storage_options or {})) as file, _content(file) as content:
                scans.append(dump_scan(scan_stream(content, url)))
        except OSError as error:
            scans.append(dump_scan(unreadable(url, error)))
    return scans


def read_titles_on(
    client: Any, sources: Iterable[str], *, storage_options: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """Return session titles, like `cc_convert.log_files.titles.read_titles`, read on a cluster.

    Same arguments and errors as `read_logs_on`.
    """
    return best_titles(_run(client, titles_of_urls, sources, storage_options))


def titles_of_urls(urls: Sequence[str], storage_options: Mapping[str, Any] | None = None) -> list[Titles]:
    """Find the titles in files, on a worker."""
    fsspec = need("fsspec", "Reading from a store")
    titles: list[Titles] = []
    for url in urls:
        with suppress(OSError), fsspec.open(url, "rb", **(storage_options or {})) as file:
            size = 0 if begins_packed(file) else file.seek(0, os.SEEK_END)
            titles.append(find_titles(partial(_content, file), size))
    return titles


def _run(client: Any, task: Callable[..., Any], sources: Iterable[str], options: Mapping[str, Any] | None) -> Any:
    """Return the task results for all files, in order."""
    groups = group_by_size(_sizes(sources, options or {}), _TASK)
    # Not pure: the files may have grown by the next call.
    futures = client.map(task, groups, storage_options=options, pure=False, retries=_RETRIES)
    return chain.from_iterable(client.gather(futures))


@contextmanager
def _content(file: Any, offset: int = 0) -> Generator[Readable]:
    packed = begins_packed(file)
    file.seek(offset)
    if packed:
        with open_packed(file) as content:
            yield content
    else:
        yield Blocks(file.read)


def _sizes(sources: Iterable[str], options: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return the selected files, each once, with their sizes."""
    fsspec = need("fsspec", "Reading from a store")
    files: dict[str, int] = {}
    for source in sources:
        store, path = fsspec.core.url_to_fs(source, **options)
        infos: dict[str, Any]
        if any(mark in path for mark in "*?["):
            infos = {name: info for name, info in store.glob(path, detail=True).items() if info["type"] == "file"}
        elif store.isfile(path):
            infos = {path: store.info(path)}
        else:
            infos = {name: info for name, info in store.find(path, detail=True).items() if name.endswith(ENDINGS)}
        if not infos:
            raise LogsNotFoundError(f"no logs at {source}")
        files |= {store.unstrip_protocol(name): info.get("size") or 0 for name, info in infos.items()}
    return sorted(files.items())
