"""The engines as the tests see them: workers to start and to kill, and the client to talk to them, all from examples/."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

EXAMPLES = Path(__file__).parents[2] / "examples" / "durable"

# An interpreter that loads all the libraries needs 2 seconds alone and 20 on a busy machine.
_COMMAND_SECONDS = 90.0
_READY_SECONDS = 90.0
# A guard gives a CLI whose owner died two seconds.
_END_SECONDS = 15.0


@dataclass
class Worker:
    """A worker process with its children."""

    process: subprocess.Popen[bytes]
    name: str
    log: Path

    def kill(self) -> None:
        """End all its Python processes at once, as a failing machine would; its CLIs are left to themselves."""
        family = self.family()
        for one in family:
            if one.pid == self.process.pid or "python" in one.name():
                one.kill()
        self.process.wait()
        _, left = psutil.wait_procs(family, timeout=_END_SECONDS)
        assert not left, f"still alive after their owner was killed: {left}"

    def stop(self) -> None:
        """Ask it to stop; nothing that it started is there afterwards."""
        family = self.family()
        self.process.send_signal(signal.SIGINT)
        self.process.wait(_COMMAND_SECONDS)
        _, left = psutil.wait_procs(family, timeout=_END_SECONDS)
        assert not left, f"still alive after their owner was stopped: {left}"

    def family(self) -> list[psutil.Process]:
        """The process and all below it."""
        try:
            root = psutil.Process(self.process.pid)
            return [root, *root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []


@dataclass
class Engine:
    """One engine on its server: its scripts in examples/, and how they are told where the server is."""

    name: str
    folder: Path
    env: Mapping[str, str]
    ready: str = "ready"
    """What a worker writes when it is."""
    workers: list[Worker] = field(default_factory=list[Worker])

    @property
    def question(self) -> str:
        """The id of the test's question; a server may serve several tests."""
        return self.folder.name

    def start_worker(self, name: str, **variables: str) -> Worker:
        """Start a worker and wait until it is ready."""
        command = [sys.executable, str(EXAMPLES / f"{self.name}_worker.py"), *([name] if self.name == "dbos" else [])]
        log = self.folder / f"{name}.log"
        env = {**os.environ, **self.env, **variables}
        with log.open("wb") as output:
            process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        self.workers.append(worker := Worker(process, name, log))
        deadline = time.monotonic() + _READY_SECONDS
        while self.ready not in (written := log.read_text(errors="replace")):
            assert process.poll() is None and time.monotonic() < deadline, f"{name} is not ready:\n{written}"
            time.sleep(0.05)
        return worker

    def client(self, *words: str) -> str:
        """Run the client; return what it wrote, without the line's end."""
        command = [sys.executable, str(EXAMPLES / f"{self.name}_client.py"), *words]
        run = subprocess.run(
            command, env={**os.environ, **self.env}, capture_output=True, text=True, timeout=_COMMAND_SECONDS
        )
        if run.returncode:
            raise ClientError(run.stderr)
        return run.stdout.strip()

    def take_over(self, question: str, dead: Worker) -> None:
        """Have another worker go on with a question; for Temporal there is nothing to do."""
        if self.name == "dbos":
            self.client("take-over", dead.name)
        if self.name == "prefect":
            self.client("take-over", question)

    def close(self) -> None:
        """End the workers that are left."""
        for worker in self.workers:
            for one in worker.family():
                one.kill()
            worker.process.wait()


class ClientError(Exception):
    """A client command failed; the message is what it wrote."""
