"""The packages without the functions that Python lacks on Windows; the tests themselves run on POSIX systems."""

import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, os, pkgutil, signal, socket, sys
from importlib import import_module
from pathlib import Path

PACKAGES = sys.argv[1:]
LACKING = {
    os: "fork register_at_fork geteuid getuid fchmod killpg setsid waitid sysconf O_CLOEXEC O_NOFOLLOW O_NONBLOCK",
    signal: "SIGKILL SIGSTOP SIGCONT SIGHUP",
    socket: "AF_UNIX SO_PEERCRED MSG_DONTWAIT",
}


def import_all():
    for package in map(import_module, PACKAGES):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                import_module(module.name)


# Libraries and the event loop choose their code for a system early, and it has to be the code for this one.
import_all()
runner = asyncio.Runner()
runner.get_loop()
for name in [name for name in sys.modules if name.partition(".")[0] in PACKAGES]:
    del sys.modules[name]
for module, names in LACKING.items():
    for name in names.split():
        delattr(module, name)
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
sys.platform = "win32"
asyncio.ProactorEventLoop = asyncio.SelectorEventLoop
import_all()

from cc_ipc import IPCClient, IPCServer, TransportUnavailableError, resolve_transport

print(resolve_transport().transport)
try:
    resolve_transport("stdio")
except TransportUnavailableError as error:
    print(error)
for use in (lambda: IPCServer("socket", {}).start(), lambda: IPCClient("socket").call_tool("a", {})):
    try:
        runner.run(use())
    except OSError as error:
        print(error)
runner.close()
"""

PACKAGES = (
    "cc_types cc_convert cc_compat cc_ipc cc_ipc_bridge cc_session cc_messages cc_langchain cc_model cc_demo "
    "cc_loopback"
)
MISSING = "Tool calls across processes need Unix sockets, which Python does not have on Windows."


@pytest.mark.slow
def test_everything_imports_without_posix_and_only_the_use_of_unix_sockets_fails() -> None:
    """ARCH-40"""
    command = [sys.executable, "-c", PROGRAM, *PACKAGES.split()]
    process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)

    assert process.returncode == 0, process.stderr
    default, unavailable, *refused = process.stdout.splitlines()
    assert default == "sdk"
    assert "the bridge needs Unix sockets, which this platform lacks" in unavailable
    assert [line.partition(" Use ")[0] for line in refused] == [MISSING, MISSING]
