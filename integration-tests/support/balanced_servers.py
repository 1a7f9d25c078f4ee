"""Three servers behind HAProxy that count in one database, with the configuration in the page "Many machines"."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from doc_pages import ROOT, free_port, read_page

__all__ = ["Balanced", "Server", "balanced"]

PAGE = ROOT / "docs" / "how-to" / "many-machines.md"


@dataclass
class Server:
    """A `cc-server`, which can be ended and started again on its port."""

    name: str
    port: int
    env: dict[str, str]
    options: Sequence[str]
    _running: subprocess.Popen[str] | None = field(default=None, repr=False)

    def start(self) -> None:
        """Start the server, and return when it accepts connections."""
        command = [sys.executable, "-m", "cc_server", "--log-level", "error", *self.options]
        env = {**os.environ, **self.env, "ANTHROPIC_CUSTOM_HEADERS": f"x-server: {self.name}"}
        self._running = subprocess.Popen(
            [*command, "--port", str(self.port)], env=env, stdout=subprocess.PIPE, text=True
        )
        assert self._running.stdout is not None
        assert "BASE_URL" in self._running.stdout.readline()

    def end(self, number: signal.Signals) -> int:
        """Send a signal, wait for the end, and return the exit code."""
        running, self._running = self._running, None
        if running is None:
            return 0
        with running:
            running.send_signal(number)
            return running.wait(60)

    @property
    def pid(self) -> int:
        """Process id."""
        assert self._running is not None
        return self._running.pid


@dataclass(frozen=True)
class Balanced:
    """HAProxy's address, and the servers."""

    url: str
    servers: list[Server]

    @property
    def is_up(self) -> bool:
        """True if HAProxy accepts connections."""
        try:
            socket.create_connection(("127.0.0.1", int(self.url.rpartition(":")[2])), timeout=1).close()
        except ConnectionRefusedError:
            return False
        return True


@contextmanager
def balanced(env: dict[str, str], folder: Path, options: Sequence[str]) -> Generator[Balanced]:
    """Run HAProxy, and three servers with these options and further variables."""
    ports = {number: str(free_port()) for number in ("8400", "8401", "8402", "8403")}
    [config] = [block.code for block in read_page(PAGE) if block.title == "haproxy.cfg"]
    file = folder / "haproxy.cfg"
    file.write_text(re.sub(r"\b840[0-3]\b", lambda match: ports[match[0]], config), encoding="utf-8")
    _, *own = ports.values()
    servers = [Server(name, int(port), env, options) for name, port in zip("abc", own, strict=True)]
    with ExitStack() as stack:
        for server in servers:
            stack.callback(server.end, signal.SIGTERM)
            server.start()
        proxy = stack.enter_context(subprocess.Popen(["haproxy", "-db", "-f", file]))
        stack.callback(proxy.terminate)
        yield Balanced(f"http://127.0.0.1:{ports['8400']}", servers)
