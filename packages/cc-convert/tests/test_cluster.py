"""The same rows and sums from a cluster."""

from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from cc_convert.logs import LogsNotFoundError, read_logs

pytestmark = pytest.mark.worlds

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
fsspec = pytest.importorskip("fsspec")

Maker: TypeAlias = Callable[..., Any]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Two worker processes."""
    folder = tmp_path_factory.mktemp("dask")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", local_directory=str(folder)
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
    # The tracker would outlive the test, and other tests look for leftover processes. Nothing public stops it.
    resource_tracker._resource_tracker._stop()  # pyright: ignore[reportAttributeAccessIssue, reportPrivateUsage, reportUnknownMemberType]


@pytest.fixture
def tree(maker: Maker, tmp_path: Path) -> Path:
    """Sessions with forks, compactions, and damaged lines."""
    for number in range(12):
        log = maker(f"s{number}")
        for answer in range(40):
            log.answer(f"msg_{number}_{answer}")
            log.user("x" * 1000)
        log.state({"claude-sonnet-5": (5000, 1000, 50_000, 10_000, 5000, 0.1)})
        path = log.write(tmp_path / "tree" / f"{number % 3}" / f"s{number}.jsonl")
        with path.open("ab") as file:
            file.write(b"damaged\n")
    return tmp_path / "tree"


def same(cluster: Any, local: Any) -> bool:
    return (
        cluster.rows == local.rows and cluster.totals == local.totals and len(cluster.problems) == len(local.problems)
    )


def test_a_cluster_gives_the_same_rows_and_sums(client: Any, tree: Path) -> None:
    """LOG-55"""
    from cc_convert.cluster import read_logs_on

    local = read_logs(tree)

    assert same(read_logs_on(client, [tree.as_uri()]), local)
    assert same(read_logs_on(client, [f"{tree}/*/*.jsonl"]), local)
    assert len(local.problems) == 12


def test_any_store_of_fsspec_is_read(tree: Path) -> None:
    """LOG-55: a store in memory, whose files exist only in this process."""
    from cc_convert.cluster import read_logs_on

    memory = fsspec.filesystem("memory")
    memory.put(str(tree), "/logs", recursive=True)
    with distributed.Client(processes=False, n_workers=1, dashboard_address=":0") as client:
        logs = read_logs_on(client, ["memory://logs"])

    assert logs.rows == read_logs(tree).rows


def test_a_report_is_made_on_a_cluster(client: Any, tree: Path, run: Callable[..., Any]) -> None:
    """LOG-55"""
    words = ["report", "session", "--format", "json"]

    done = run(*words, "--dask", client.scheduler_info()["address"], tree.as_uri())

    here = run(*words, tree)
    assert (done.code, done.json["lines"]) == (here.code, here.json["lines"])
    assert run("report", "tool", "--dask", client.scheduler_info()["address"], tree.as_uri()).code == 2


def test_a_source_that_is_not_there_is_said(client: Any, tmp_path: Path) -> None:
    from cc_convert.cluster import read_logs_on

    with pytest.raises(LogsNotFoundError, match="no logs"):
        read_logs_on(client, [(tmp_path / "gone").as_uri()])
