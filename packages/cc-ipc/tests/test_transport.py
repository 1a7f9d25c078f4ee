"""The transport that the installed versions allow."""

import socket
import sys
from importlib import metadata
from pathlib import Path

import pytest

from cc_ipc import IPCServer, TransportType, TransportUnavailableError, resolve_transport


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Versions that the package sees as installed."""
    versions: dict[str, str] = {"claude-agent-sdk": "0.2.189", "mcp": "2.3.0"}

    def version(name: str) -> str:
        if name not in versions:
            raise metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(metadata, "version", version)
    return versions


SDK = "claude-agent-sdk"
LACKING = [
    (SDK, "", "claude-agent-sdk is not installed"),
    (SDK, "0.2.139", "claude-agent-sdk 0.2.139 is installed, and an in-process server loses nothing from"),
    (SDK, "0.1.99.dev3+local.5", "claude-agent-sdk 0.1.99 is installed"),
    ("mcp", "", "mcp is not installed"),
    ("mcp", "1.28.0", "mcp 1.28.0 is installed"),
]


@pytest.fixture
def no_unix_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "AF_UNIX")


def test_auto_prefers_the_faster_transport_if_it_is_lossless(installed: dict[str, str]) -> None:
    """IPC-D-03, IPC-P-55."""
    assert installed
    choice = resolve_transport()
    assert choice == resolve_transport("auto")
    assert (choice.transport, "starts faster" in choice.reason) == ("sdk", True)


@pytest.mark.usefixtures("no_unix_sockets")
def test_the_bridge_is_unavailable_without_unix_sockets(installed: dict[str, str]) -> None:
    assert installed
    assert resolve_transport("auto").transport == "sdk"
    with pytest.raises(TransportUnavailableError, match="needs Unix sockets, which this platform lacks"):
        resolve_transport("stdio")


@pytest.mark.parametrize(("name", "version", "reason"), LACKING)
def test_the_reason_names_the_loss_for_auto_and_for_sdk(
    installed: dict[str, str], name: str, version: str, reason: str
) -> None:
    """IPC-P-55."""
    del installed[name]
    if version:
        installed[name] = version
    choice = resolve_transport("auto")
    assert choice.transport == "stdio"
    assert choice.reason.startswith(reason)
    if SDK in installed:
        choice = resolve_transport("sdk")
        assert choice.transport == "sdk"
        assert choice.reason.startswith(f"it was asked for, though {reason}")


@pytest.mark.parametrize("transport", ["stdio", "sdk"])
def test_an_explicit_transport_is_used(installed: dict[str, str], transport: TransportType) -> None:
    """IPC-D-01, IPC-D-02."""
    choice = resolve_transport(transport)
    assert (choice.transport, choice.reason) == (transport, "it was asked for")


@pytest.mark.usefixtures("no_unix_sockets")
@pytest.mark.parametrize(
    ("transport", "reason"),
    [("sdk", "claude-agent-sdk is not installed"), ("auto", "needs Unix sockets.*, and claude-agent-sdk is not")],
)
def test_the_error_names_the_missing_parts_if_no_transport_is_available(
    installed: dict[str, str], transport: TransportType, reason: str
) -> None:
    installed.clear()
    with pytest.raises(TransportUnavailableError, match=reason):
        resolve_transport(transport)


async def test_socket_on_windows_is_an_error_that_names_the_other_transport(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """ARCH-40."""
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(OSError, match=r"no.* on Windows\. Use transport='sdk'"):
        await IPCServer(tmp_path / "socket", {}).start()
