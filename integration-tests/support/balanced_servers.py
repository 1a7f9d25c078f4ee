"""Two servers behind HAProxy, with the configuration in the page "Many machines"."""

import os
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cc_loopback import LoopbackServer
from doc_pages import ROOT, free_port, read_page

__all__ = ["Balanced", "Server", "balanced"]

PAGE = ROOT / "docs" / "how-to" / "many-machines.md"


@dataclass
class Server:
    """A `cc-server`, which can be ended and started again on its port."""

    name: str
    port: int
    env: dict[str, str]
    size: int
    _running: subprocess.Popen[str] | None = field(default=None, repr=False)

    def start(self) -> None:
        """Start the server, and return when it accepts connections."""
        command = [sys.executable, "-m", "cc_server", "--log-level", "error", "--size", str(self.size)]
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
    """HAProxy's address, the servers' token, and the servers."""

    url: str
    token: str
    servers: tuple[Server, Server]


@contextmanager
def balanced(api: LoopbackServer, folder: Path, size: int) -> Generator[Balanced]:
    """Run HAProxy and two servers with `size` processes each."""
    token = secrets.token_urlsafe()
    ports = {number: str(free_port()) for number in ("8400", "8401", "8402")}
    [config] = [block.code for block in read_page(PAGE) if block.title == "haproxy.cfg"]
    file = folder / "haproxy.cfg"
    file.write_text(re.sub(r"\b840[012]\b", lambda match: ports[match[0]], config), encoding="utf-8")
    env = {**api.env(), "CC_SERVER_TOKEN": token}
    servers = tuple(Server(name, int(ports[port]), env, size) for name, port in (("a", "8401"), ("b", "8402")))
    with ExitStack() as stack:
        for server in servers:
            stack.callback(server.end, signal.SIGTERM)
            server.start()
        proxy = stack.enter_context(subprocess.Popen(["haproxy", "-db", "-f", file]))
        stack.callback(proxy.terminate)
        assert len(servers) == 2
        yield Balanced(f"http://127.0.0.1:{ports['8400']}", token, servers)
