"""The background loop beside the program's event loops: other policies, and forks."""

import asyncio
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions

from cc_session.background import BackgroundLoop

from .conftest import FakeCLI

pytestmark = pytest.mark.deaths

if sys.platform == "win32":
    raise pytest.skip.Exception("needs POSIX", allow_module_level=True)

# As uvloop's: it makes other loops, and has no child watcher.
POLICY = """
import asyncio, os, sys, warnings

class Policy(asyncio.AbstractEventLoopPolicy):
    def get_event_loop(self):
        raise RuntimeError
    def set_event_loop(self, loop):
        pass
    def new_event_loop(self):
        return asyncio.SelectorEventLoop()
"""
OPENING = """
from claude_agent_sdk import ClaudeAgentOptions
from cc_session import Session
from cc_session.internals import run_on_background

def opened():
    session = run_on_background(Session.open, ClaudeAgentOptions(cli_path=sys.argv[1]))
    run_on_background(session.close)
    return session.pid
"""


def run(program: str, *arguments: object) -> str:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="asyncio asks no policy for a child watcher")
@pytest.mark.parametrize("moment", ["earlier", "later"])
def test_processes_start_under_a_policy_without_child_watcher(fake_cli: FakeCLI, moment: str) -> None:
    """SES-74: such as uvloop's, installed before the background loop starts, or after."""
    install = "asyncio.set_event_loop_policy(Policy())"
    options: ClaudeAgentOptions = fake_cli("initialize()\nsys.stdin.read()")
    before, after = ("", install) if moment == "later" else (install, "")
    run(f"{POLICY}{before}\n{OPENING}\nopened()\n{after}\nopened()", options.cli_path)


FORKS = """
import asyncio, os, signal, sys, time, warnings
import cc_session
warnings.simplefilter("ignore")

def answer():
    # The loop waits, and a thread wakes it.
    own_loop().run_until_complete(asyncio.to_thread(time.sleep, 0.05))

def own_loop():
    try:
        return asyncio.get_event_loop()
    except RuntimeError:
        asyncio.set_event_loop(loop := asyncio.new_event_loop())
        return loop

signal.alarm(20)
answer()
number = id(own_loop())
if not (child := os.fork()):
    signal.alarm(20)
    assert id(own_loop()) != number
    answer()
    if not (grandchild := os.fork()):
        answer()
        sys.exit()
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
answer()
print(id(own_loop()) == number)
"""


def test_a_forked_child_gets_a_new_loop_the_parent_keeps_its_loop() -> None:
    """SES-74: if a stopped loop is used again and again, as frameworks do in `run_sync`."""
    assert run(FORKS).split() == ["0", "True"]


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="asyncio asks no policy for a child watcher")
def test_asyncio_makes_subprocesses_as_the_background_loop_expects() -> None:
    """SES-78: it replaces this method, and uses the same private parts."""
    loops: list[Any] = [asyncio.SelectorEventLoop, BackgroundLoop]
    plain, own = (loop._make_subprocess_transport for loop in loops)
    names = [*inspect.signature(plain).parameters]
    assert names[:-2] == [*inspect.signature(own).parameters][:-1]
    assert names[-2:] == ["extra", "kwargs"]
    source = Path(inspect.getfile(plain)).read_text(encoding="utf-8")
    assert source.count("get_child_watcher()") >= 1
    for part in ("_UnixSubprocessTransport(", "_child_watcher_callback, transp)", "await transp._wait()"):
        assert part in inspect.getsource(plain)
