"""The prepared interpreter runs a program like a new interpreter, so that tests may use it."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from prepared_python import python

pytestmark = pytest.mark.slow

LEAVES = """
import atexit, sys, threading
atexit.register(print, "at the end")
threading.Timer(0.1, print, ["in a thread"]).start()
print(sys.argv, sys.path[0], __name__, globals().get("__file__"), sys.stdin.read(), sys.stdout.seekable())
sys.exit(3)
"""
WAITS = """
import os, signal, time
signal.signal(signal.SIGTERM, lambda *_: os.write(1, b"told\\n"))
print(os.getpid(), flush=True)
while True:
    time.sleep(60)
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["-c", LEAVES, "a"],
        ["leaves.py", "-c", "b"],
        ["-m", "leaves", "c"],
        ["-W", "error", "-c", "import warnings; warnings.warn('old')"],
        ["-c", "import os; os.kill(os.getpid(), 15)"],
        ["-c", "from pydantic import none"],
        ["-I", "-c", "import sys; print(sys.flags.isolated)"],
    ],
)
def test_a_program_runs_and_ends_as_in_a_new_interpreter(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "leaves.py").write_text(LEAVES, encoding="utf-8")
    prepared, new = (
        subprocess.run([start, *arguments], cwd=tmp_path, input="typed", capture_output=True, text=True, timeout=100)
        for start in (python(), sys.executable)
    )
    assert (prepared.returncode, prepared.stdout) == (new.returncode, new.stdout)
    assert prepared.stderr.splitlines()[-1:] == new.stderr.splitlines()[-1:]


def test_a_program_gets_the_signals_of_its_client_and_ends_with_it() -> None:
    with subprocess.Popen([python(), "-c", WAITS], stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        program = psutil.Process(int(client.stdout.readline()))
        client.terminate()
        assert client.stdout.readline() == "told\n"
        client.kill()
    program.wait(timeout=10)
