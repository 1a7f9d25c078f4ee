"""Process trees: marks, ends and memory, with programs in place of a CLI."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from cc_session.process.process_tree import MARK, descendants, end_all, limit_of, set_limit

if sys.platform == "win32":
    raise pytest.skip.Exception("needs POSIX", allow_module_level=True)

Start = Callable[..., subprocess.Popen[str]]

FOLDER = Path("/nowhere") / str(uuid4())


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a shell that prints a line when it is ready, with a folder's mark."""
    started: list[subprocess.Popen[str]] = []

    def shell(script: str, folder: Path = FOLDER) -> subprocess.Popen[str]:
        env = {**os.environ, MARK: str(folder)}
        command = ["sh", "-c", script]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env))
        return started[-1]

    yield shell
    for process in started:
        with process:
            process.kill()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.skipif(sys.platform != "linux", reason="the system shows no limits")
def test_a_process_without_parents_and_environment_is_a_descendant(start: Start) -> None:
    """SES-77: it inherits the limit, and a process with another limit is not touched."""
    cli = start("read _; (env -i setsid sh -c 'echo $$; exec sleep 60' &)")
    folder = FOLDER / "limit"
    set_limit(cli.pid, folder)
    set_limit(cli.pid, FOLDER / "other")
    assert cli.stdin is not None
    print(file=cli.stdin, flush=True)
    detached = int(line(cli))
    cli.wait(10)
    assert [process.pid for process in descendants(None, folder)] == [detached]
    assert descendants(None, FOLDER / "other") == []
    assert limit_of(folder) != limit_of(FOLDER / "other")
    end_all(descendants(None, folder), 10)
    assert descendants(None, folder) == []


def test_what_does_not_end_is_killed(start: Start) -> None:
    stubborn = start("trap '' TERM; echo; while true; do sleep 0.01; done")
    line(stubborn)
    end_all([psutil.Process(stubborn.pid)], 0.05)
    assert stubborn.wait(10) == -signal.SIGKILL


def test_a_reused_process_id_gets_no_signal(start: Start) -> None:
    other = start("echo; exec sleep 60")
    line(other)
    gone = psutil.Process(other.pid)
    vars(gone)["_ident"] = (other.pid, 0)  # as it was before
    end_all([gone], 10)
    assert other.poll() is None
