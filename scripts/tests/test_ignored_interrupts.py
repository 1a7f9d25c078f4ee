"""The tests that send Ctrl-C, where SIGINT is ignored as under `nohup`."""

import signal
import subprocess
import sys

import pytest

from workspace import ROOT

TESTS = (
    "packages/cc-session/tests/test_lifetime.py::test_the_process_ends_with_a_script_that_is_ended_in_a_turn",
    "packages/cc-convert/tests/test_command_process.py::test_an_interrupt_is_quiet",
    "packages/cc-convert/tests/test_command_process.py::test_watch_shows_what_came_in",
    "packages/cc-demo/tests/test_signals.py",
)


@pytest.mark.slow
@pytest.mark.timeout(250)
@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_tests_with_interrupts_pass_where_sigint_is_ignored() -> None:
    """A program that ignores Ctrl-C would keep its test waiting for ever."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *TESTS]
    result = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN) and None,
    )
    assert result.returncode == 0, result.stdout[-2000:]
