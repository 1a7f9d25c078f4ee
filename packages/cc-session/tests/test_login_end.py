"""The end of a login with `/login`, which Claude Code adds to each result."""

import sys

import pytest

from cc_loopback import LoopbackServer
from cc_session import Session

from .conftest import say

# On macOS the login is in the keychain.
pytestmark = [pytest.mark.worlds, pytest.mark.skipif(sys.platform != "linux", reason="the login is a file on Linux")]


async def test_a_turn_with_another_login_has_no_end(session: Session, server: LoopbackServer) -> None:
    """SES-130"""
    server.respond = say("Hello.")
    assert (await session.run("Hello?")).response.credential_expires_at is None
