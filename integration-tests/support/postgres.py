"""A PostgreSQL server on loopback, from the programs of the system."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from doc_pages import free_port

__all__ = ["Postgres", "is_installed", "postgres"]

_FOLDERS = [*map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin"))), os.environ.get("PATH", "")]
_PASSWORD = "p/w"


def is_installed() -> bool:
    """Return true if this system has the server's programs, and a user who may run them."""
    return _program("initdb") is not None and (_user() is None or _has_user())


def _program(name: str) -> str | None:
    return shutil.which(name, path=os.pathsep.join(_FOLDERS))


@dataclass(frozen=True)
class Postgres:
    """A server with an empty database, which can be stopped and started."""

    folder: Path
    port: int

    @property
    def place(self) -> str:
        """The end of a URL."""
        return f"127.0.0.1:{self.port}/postgres"

    @property
    def url(self) -> str:
        """The address, with the password."""
        return f"postgresql://tester:{_PASSWORD.replace('/', '%2F')}@{self.place}"

    def start(self) -> None:
        """Start the server, and return when it accepts connections."""
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
        self._run("pg_ctl", "start", "-w", "-D", self.folder / "data", "-l", self.folder / "log", "-o", options)

    def stop(self) -> None:
        """Break all connections off, and stop the server."""
        self._run("pg_ctl", "stop", "-w", "-m", "immediate", "-D", self.folder / "data")

    @property
    def environment(self) -> dict[str, str]:
        """The variable with which PostgreSQL's clients find the password."""
        return {"PGPASSFILE": str(self.folder / "pgpass")}

    def create(self) -> None:
        """Create the server's files, and a file for clients."""
        password = self.folder / "password"
        password.write_text(_PASSWORD, "utf-8")
        options = ("-U", "tester", "-A", "scram-sha-256", "--pwfile", password, "--no-sync", "-E", "UTF8")
        self._run("initdb", "-D", self.folder / "data", *options)
        (file := self.folder / "pgpass").touch(0o600)
        file.write_text(f"*:*:*:tester:{_PASSWORD}\n", "utf-8")

    def _run(self, name: str, *arguments: str | Path) -> None:
        program = _program(name)
        assert program is not None
        subprocess.run([program, *arguments], check=True, user=_user(), cwd="/", stdout=subprocess.DEVNULL)


def _user() -> str | None:
    """Return another user for the server, which refuses root."""
    return "postgres" if sys.platform != "win32" and os.geteuid() == 0 else None


def _has_user() -> bool:
    with suppress(ImportError, KeyError):
        import pwd

        pwd.getpwnam("postgres")
        return True
    return False


@contextmanager
def postgres() -> Generator[Postgres]:
    """Run a server."""
    # pytest's folders are closed to other users.
    with tempfile.TemporaryDirectory(prefix="cc-postgres-", dir="/tmp") as folder:
        if user := _user():
            shutil.chown(folder, user)
        server = Postgres(Path(folder), free_port())
        server.create()
        server.start()
        try:
            yield server
        finally:
            server.stop()
