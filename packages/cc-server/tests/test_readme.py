"""The README's example runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import claude_agent_sdk
import pytest

from cc_loopback import LoopbackServer

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")


@pytest.mark.slow
def test_the_example_for_the_shell_serves_the_cli(loopback: LoopbackServer, tmp_path: Path) -> None:
    """MSG-97: the CLI gets the same as the server's CLI."""
    loopback.respond = respond
    [script] = re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)
    cli = Path(claude_agent_sdk.__file__).parent / "_bundled"
    path = f"{Path(sys.executable).parent}:{cli}:{os.environ['PATH']}"
    env = {**os.environ, **loopback.env(), "PATH": path, "CLAUDE_CODE_MAX_RETRIES": "0"}
    process = subprocess.run(
        ["bash", "-m", "-c", script.replace("--port 8400", "--port 0") + "wait\n"],
        cwd=tmp_path,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (process.stdout.splitlines()[-1], process.returncode) == ("It is sunny.", 0), process.stderr
    assert len(loopback.requests) == 1


def respond(_: object) -> str:
    return "It is sunny."
