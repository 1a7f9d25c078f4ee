"""`cc-server` in a separate process, as clients in other programs use it."""

import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from cc_loopback import LoopbackServer
from prepared_python import python

__all__ = ["MessagesServer", "serving"]


@dataclass(frozen=True)
class MessagesServer:
    """The server's address, and the token for clients."""

    url: str
    token: str

    def env(self) -> dict[str, str]:
        """Return the environment variables that connect a CLI to it."""
        return {"ANTHROPIC_BASE_URL": self.url, "ANTHROPIC_API_KEY": self.token}


@contextmanager
def serving(api: LoopbackServer) -> Generator[MessagesServer]:
    """Serve with Claude Code on `api` during the block; check that the server exits without an error."""
    command = [python(), "-W", "default", "-m", "cc_server", "--port", "0", "--log-level", "error"]
    with subprocess.Popen(
        command, env={**os.environ, **api.env()}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            url, token = (process.stdout.readline().strip().partition("=")[2] for _ in range(2))
            yield MessagesServer(url, token)
        finally:
            process.terminate()
            _, errors = process.communicate(timeout=15)
        assert (process.returncode, errors) == (0, ""), f"it ended with {process.returncode}: {errors}"
