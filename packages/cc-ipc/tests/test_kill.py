"""Bridge, host and parent, killed at random moments during calls."""

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest

from cc_ipc.files import remove_leftovers

from .conftest import StartBridge, StartOwner

if sys.platform != "linux":
    raise pytest.skip.Exception("needs process descriptors", allow_module_level=True)

pytestmark = [
    pytest.mark.deaths,
    pytest.mark.skipif(
        not hasattr(os, "pidfd_open"), reason="only Linux shows the end of a process that is not a child"
    ),
]

KILLS = int(os.environ.get("CC_IPC_KILLS", "2"))
"""How often each is killed: 100 times in a soak run, fewer here."""

END = 2.0
"""Seconds within which the others end or report."""

# A substitute for the CLI: it starts a bridge, prints the process id, and calls a tool repeatedly.
HOST = """
import json, subprocess, sys

bridge = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
print(bridge.pid, flush=True)
number = 0
while True:
    number += 1
    call = {"name": "echo", "arguments": {"a": "a" * (number % 7 * 30_000)}}
    try:
        message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call}
        bridge.stdin.write(json.dumps(message).encode())
        bridge.stdin.write(b"\\n")
        bridge.stdin.flush()
    except BrokenPipeError:
        break
    answer = bridge.stdout.readline()
    if not answer or "error" in json.loads(answer):
        break
"""


def ends(pidfd: int) -> bool:
    """Wait for a process to end."""
    return bool(select.select([pidfd], [], [], END)[0])


@contextmanager
def host(command: list[str]) -> Generator[tuple[subprocess.Popen[bytes], int]]:
    """Yield a host and a file descriptor for the bridge process."""
    with subprocess.Popen([sys.executable, "-c", HOST, *command], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        pidfd = os.pidfd_open(int(process.stdout.readline()))
        try:
            yield process, pidfd
        finally:
            process.kill()
            os.close(pidfd)


@pytest.mark.parametrize("victim", ["bridge", "host", "parent"])
def test_after_any_kill_the_others_end_or_report(
    victim: Literal["bridge", "host", "parent"],
    folder: Path,
    owner_process: StartOwner,
    bridge_process: StartBridge,
) -> None:
    """IPC-P-40, IPC-P-36: and the next start removes the files."""
    chance = random.Random(7)
    owner = owner_process()
    for _ in range(KILLS):
        with host(owner.command) as (process, bridge):
            time.sleep(chance.uniform(0, 0.06))  # not a wait for an event: this is the random moment
            if victim == "bridge":
                signal.pidfd_send_signal(bridge, signal.SIGKILL)
                process.wait(END)  # it notices that the bridge has ended
            elif victim == "host":
                process.kill()
            else:
                owner.kill()
                process.wait(END)  # the call was answered with an error, or the bridge has ended
            assert ends(bridge)
        if victim == "parent":
            owner = owner_process()
        assert {path.name for path in folder.iterdir()} == {owner.socket_path.name, owner.schema_path.name}
        answer = bridge_process(owner.command).request("tools/call", {"name": "echo", "arguments": {"a": 1}})
        assert json.loads(answer["result"]["content"][0]["text"]) == {"a": 1}
    owner.kill()
    remove_leftovers([folder])
    assert list(folder.iterdir()) == []
