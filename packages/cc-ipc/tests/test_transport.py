"""Which transport is taken, by what is installed."""

import socket
from importlib import metadata

import pytest

from cc_ipc import TransportType, TransportUnavailableError, resolve_transport


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Versions that are installed, as far as the package can see."""
    versions: dict[str, str] = {"claude-agent-sdk": "0.2.186", "mcp": "2.3.0"}

    def version(name: str) -> str:
        if name not in versions:
            raise metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(metadata, "version", version)
    return versions


LACKING = [
    ("claude-agent-sdk", "", "claude-agent-sdk is not installed"),
    (
        "claude-agent-sdk",
        "0.2.139",
        "claude-agent-sdk 0.2.139 is installed, and an in-process server loses nothing from",
    ),
    ("claude-agent-sdk", "0.1.99.dev3+local.5", "claude-agent-sdk 0.1.99 is installed"),
    ("mcp", "", "mcp is not installed"),
    ("mcp", "1.28.0", "mcp 1.28.0 is installed"),
]


@pytest.fixture
def no_unix_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "AF_UNIX")


def test_auto_prefers_the_bridge_which_is_faster(installed: dict[str, str]) -> None:
    """IPC-D-03, IPC-P-55."""
    for _ in range(2):
        choice = resolve_transport()
        assert (choice.transport, choice.reason) == ("stdio", "the bridge is faster, and works with every SDK")
        installed.clear()


@pytest.mark.usefixtures("no_unix_sockets")
def test_auto_takes_the_in_process_server_where_there_can_be_no_bridge(installed: dict[str, str]) -> None:
    """IPC-P-55."""
    choice = resolve_transport("auto")
    assert (choice.transport, "needs Unix sockets" in choice.reason) == ("sdk", True)
    with pytest.raises(TransportUnavailableError, match="needs Unix sockets"):
        resolve_transport("stdio")


def change(installed: dict[str, str], name: str, version: str) -> None:
    del installed[name]
    if version:
        installed[name] = version


@pytest.mark.usefixtures("no_unix_sockets")
@pytest.mark.parametrize(("name", "version", "reason"), LACKING)
def test_auto_takes_no_server_that_would_lose_something(
    installed: dict[str, str], name: str, version: str, reason: str
) -> None:
    """IPC-P-55: and says what."""
    change(installed, name, version)
    with pytest.raises(TransportUnavailableError, match=f"needs Unix sockets, .* and {reason}"):
        resolve_transport("auto")


@pytest.mark.parametrize("transport", ["stdio", "sdk"])
def test_what_is_asked_for_is_taken(installed: dict[str, str], transport: TransportType) -> None:
    """IPC-D-01, IPC-D-02."""
    choice = resolve_transport(transport)
    assert (choice.transport, choice.reason) == (transport, "it was asked for")


@pytest.mark.parametrize(("name", "version", "reason"), LACKING[1:])
def test_what_the_sdk_would_lose_is_told_to_who_asks_for_it(
    installed: dict[str, str], name: str, version: str, reason: str
) -> None:
    change(installed, name, version)
    choice = resolve_transport("sdk")
    assert choice.transport == "sdk"
    assert choice.reason.startswith(f"it was asked for, though {reason}")


def test_the_sdk_cannot_be_taken_where_there_is_none(installed: dict[str, str]) -> None:
    installed.clear()
    with pytest.raises(TransportUnavailableError, match="claude-agent-sdk is not installed"):
        resolve_transport("sdk")
