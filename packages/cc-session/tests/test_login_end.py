"""The end of a login with `/login`, which Claude Code adds to each result."""

import sys
from pathlib import Path

import anyio
import pytest

from cc_loopback import LoopbackServer
from cc_session import Session, TurnError, sealed_options
from login_file import SECRET, login_env, write_login

from .conftest import say

# On macOS the login is in the keychain.
pytestmark = [pytest.mark.worlds, pytest.mark.skipif(sys.platform != "linux", reason="the login is a file on Linux")]


async def test_a_turn_has_the_end_of_the_login(server: LoopbackServer, tmp_path: Path) -> None:
    """SES-130: in the typed result, also of a failed turn, although the SDK's parser drops it."""
    ends_at = write_login(tmp_path)
    env = login_env(server, tmp_path)
    server.respond = say("Hello.")
    with anyio.fail_after(30):
        async with await Session.open(sealed_options(env=env)) as session:
            turns = [await session.run("Hello?")]
            server.fail_next(400)
            with pytest.raises(TurnError) as raised:
                await session.run("Hello?")
            turns.append(raised.value.turn)
    assert [turn.response.credential_expires_at for turn in turns] == [ends_at] * 2
    assert SECRET not in repr(turns)


async def test_a_turn_with_another_login_has_no_end(session: Session, server: LoopbackServer) -> None:
    """SES-130"""
    server.respond = say("Hello.")
    assert (await session.run("Hello?")).response.credential_expires_at is None
