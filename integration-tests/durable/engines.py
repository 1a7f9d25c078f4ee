"""The engines in the tests: workers to start and kill, and a client to control them, all from examples/."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Timer

import psutil

EXAMPLES = Path(__file__).parents[2] / "examples" / "durable"
_CLIENT_LOOP = Path(__file__).parent / "apps" / "client_loop.py"

# Seconds. An interpreter that loads all the libraries needs 2 alone, and 60 on a very busy machine.
_READY_SECONDS = 200.0
# Some commands wait for five minutes before they fail.
_COMMAND_SECONDS = 350.0
# An orphaned CLI's watchdog waits two seconds.
_END_SECONDS = 30.0


class ClientError(Exception):
    """A client command failed; the message is the output."""


class Worker:
    """A worker process and its child processes."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path) -> None:
        self.name = name
        self.log = log
        self._process = process

    def wait_until(self, ready: str) -> None:
        """Wait until the output contains a text."""
        deadline = time.monotonic() + _READY_SECONDS
        while ready not in (written := self.log.read_text(errors="replace")):
            is_late = self._process.poll() is not None or time.monotonic() > deadline
            assert not is_late, f"{self.name} is not ready:\n{written}"
            time.sleep(0.05)

    def kill(self) -> None:
        """Kill all Python processes at once, as a failing machine would; CLIs must exit without help."""
        family = self._family()
        for process in family:
            if process.pid == self._process.pid or "python" in process.name():
                process.kill()
        self._wait_for_end(family)

    def stop(self) -> None:
        """Send a signal to stop."""
        family = self._family()
        self._process.send_signal(signal.SIGINT)
        self._wait_for_end(family)

    def close(self) -> None:
        """End the remaining processes."""
        for process in self._family():
            process.kill()
        self._process.wait()

    def _family(self) -> list[psutil.Process]:
        if self._process.poll() is not None:
            return []
        root = psutil.Process(self._process.pid)
        return [root, *root.children(recursive=True)]

    def _wait_for_end(self, family: list[psutil.Process]) -> None:
        self._process.wait(_COMMAND_SECONDS)
        _, alive = psutil.wait_procs(family, timeout=_END_SECONDS)
        assert not alive, f"still alive after {self.name} has ended: {alive}"


class Engine:
    """An engine and its server.

    Args:
        name: The first part of the script names.
        folder: The folder for the tests' files.
        env: Environment variables with the server's address.
        ready: A worker's output when it is ready.
    """

    def __init__(self, name: str, folder: Path, env: Mapping[str, str], ready: str = "ready") -> None:
        self.name = name
        self.env = env
        self.workers: list[Worker] = []
        self._folder = folder
        self._ready = ready
        self._client: subprocess.Popen[str] | None = None

    @property
    def question(self) -> str:
        """Return the test's question id; a server may serve several tests."""
        return self._folder.name

    def start_worker(self, name: str, **variables: str) -> Worker:
        """Start a worker and wait until it is ready."""
        words = [f"{self.name}_worker.py", *([name] if self.name == "dbos" else [])]
        return self.run_worker(name, [sys.executable, *words], **variables)

    def run_worker(self, name: str, command: Sequence[str], **variables: str) -> Worker:
        """Start a worker by a command and wait until it is ready."""
        log = self._folder / f"{name}.log"
        env = {**os.environ, **self.env, **variables}
        with log.open("wb") as output:
            process = subprocess.Popen(
                command, env=env, cwd=EXAMPLES, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        self.workers.append(worker := Worker(name, process, log))
        worker.wait_until(self._ready)
        return worker

    def client(self, *words: str) -> str:
        """Run a client command; return the output without the newline.

        Raises:
            ClientError: The command failed.
        """
        client = self._client = self._client or self._start_client()
        assert client.stdin is not None and client.stdout is not None
        # A read has no timeout, but ends with the process.
        (watchdog := Timer(_COMMAND_SECONDS, client.kill)).start()
        try:
            client.stdin.write(json.dumps(words) + "\n")
            client.stdin.flush()
            answer = json.loads(client.stdout.readline())
        finally:
            watchdog.cancel()
        if "error" in answer:
            raise ClientError(answer["error"])
        return str(answer["printed"]).strip()

    def take_over(self, question: str, dead: Worker) -> None:
        """Let another worker continue a question; for Temporal there is nothing to do."""
        if self.name == "dbos":
            self.client("take-over", dead.name)
        if self.name == "prefect":
            self.client("take-over", question)

    def close(self) -> None:
        """End all remaining processes."""
        for worker in self.workers:
            worker.close()
        if self._client is not None:
            self._client.kill()
            self._client.communicate()

    def _start_client(self) -> subprocess.Popen[str]:
        command = [sys.executable, str(_CLIENT_LOOP), str(EXAMPLES / f"{self.name}_client.py")]
        env = {**os.environ, **self.env}
        return subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
