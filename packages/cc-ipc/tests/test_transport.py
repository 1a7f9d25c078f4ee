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


def test_auto_prefers_the_faster_one_where_it_loses_nothing(installed: dict[str, str]) -> None:
    """IPC-D-03, IPC-P-55."""
    assert installed
    choice = resolve_transport()
    assert choice == resolve_transport("auto")
    assert (choice.transport, "starts faster" in choice.reason) == ("sdk", True)


@pytest.mark.usefixtures("no_unix_sockets")
def test_the_bridge_cannot_be_taken_without_unix_sockets(installed: dict[str, str]) -> None:
    assert installed
    assert resolve_transport("auto").transport == "sdk"
    with pytest.raises(TransportUnavailableError, match="needs Unix sockets, which this platform lacks"):
        resolve_transport("stdio")


@pytest.mark.parametrize(("name", "version", "reason"), LACKING)
def test_what_the_other_would_lose_is_told_by_auto_which_takes_the_bridge_and_to_who_asks_for_it(
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
def test_what_is_asked_for_is_taken(installed: dict[str, str], transport: TransportType) -> None:
    """IPC-D-01, IPC-D-02."""
    choice = resolve_transport(transport)
    assert (choice.transport, choice.reason) == (transport, "it was asked for")


@pytest.mark.usefixtures("no_unix_sockets")
@pytest.mark.parametrize(
    ("transport", "reason"),
    [("sdk", "claude-agent-sdk is not installed"), ("auto", "needs Unix sockets.*, and claude-agent-sdk is not")],
)
def test_what_is_missing_is_told_where_there_is_neither(
    installed: dict[str, str], transport: TransportType, reason: str
) -> None:
    installed.clear()
    with pytest.raises(TransportUnavailableError, match=reason):
        resolve_transport(transport)
