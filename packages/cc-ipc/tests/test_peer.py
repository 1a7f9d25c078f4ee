"""Peer credentials from a socket."""

import os
import socket
import sys

import pytest

from cc_ipc_bridge.peer import is_own_peer, peer_uid

if sys.platform == "win32":
    raise pytest.skip.Exception("needs POSIX", allow_module_level=True)


def test_the_peer_of_a_socket_pair_is_this_user_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """IPC-D-28."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert peer_uid(ours) == os.geteuid()
        assert is_own_peer(theirs)
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
        assert not is_own_peer(ours)


def test_a_peer_without_credentials_counts_as_another_user() -> None:
    with socket.socket(socket.AF_INET) as sock:
        assert not is_own_peer(sock) or sys.platform.startswith("linux")

    class Silent:
        def getsockopt(self, level: int, optname: int, buflen: int, /) -> bytes:
            raise OSError("not supported")

    assert not is_own_peer(Silent())


def test_other_platforms_use_their_own_socket_option(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mac:
        def getsockopt(self, level: int, optname: int, buflen: int, /) -> bytes:
            assert (level, optname) == (0, 1)  # SOL_LOCAL, LOCAL_PEERCRED
            return (0).to_bytes(4, sys.byteorder) + (501).to_bytes(4, sys.byteorder) + bytes(buflen - 8)

    monkeypatch.setattr(sys, "platform", "darwin")
    assert peer_uid(Mac()) == 501
