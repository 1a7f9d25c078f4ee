"""A killed process is a single log line, without secrets and other requests' data."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from prepared_python import python

SCRIPT = Path(__file__).parent / "support" / "killed_runs.py"


@pytest.mark.skipif(sys.platform == "win32", reason="processes are killed with signals")
@pytest.mark.parametrize("login", ["api-key", "oauth"])
@pytest.mark.timeout(180)
@pytest.mark.slow
async def test_a_killed_process_is_one_line_on_stderr_and_shows_no_secret(login: str) -> None:
    """SEC-06, SES-86: with secrets in all possible places, at each moment of a request."""
    command = [python(), str(SCRIPT), login, "20"]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
    stdout, stderr = await process.communicate()
    assert process.returncode == 0, stderr.decode()
    report: dict[str, Any] = json.loads(stdout)
    lines = stderr.decode().splitlines()
    assert report["killed"] > 0
    assert [line.partition(":")[2] for line in lines if "SIGKILL" not in line] == []
    assert len(lines) == len({line.split(":")[0] for line in lines}) <= report["killed"]  # a zombie ignores signals
    assert "SECRET" not in stdout.decode() + stderr.decode()
