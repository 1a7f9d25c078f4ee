"""The end of a login with `/login`, which Claude Code adds to each result."""

import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from cc_loopback import LoopbackServer
from cc_session import Session, TurnError, sealed_options

from .conftest import say

# On macOS the login is in the keychain.
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the login is a file on Linux")


async def test_a_turn_has_the_end_of_the_login(server: LoopbackServer, tmp_path: Path) -> None:
    """SES-130: in the typed result, also of a failed turn, although the SDK's parser drops it."""
    now = int(time.time())
    login = {
        "accessToken": "sk-ant-oat01-secret", "refreshToken": "secret", "expiresAt": (now + 3_600) * 1_000,
        "refreshTokenExpiresAt": (now + 1_000_000) * 1_000, "scopes": ["user:inference", "user:profile"],
    }  # fmt: skip
    (tmp_path / ".credentials.json").write_text(json.dumps({"claudeAiOauth": login}))
    env = {**server.env("oauth"), "CLAUDE_CODE_OAUTH_TOKEN": "", "CLAUDE_CONFIG_DIR": str(tmp_path)}
    server.respond = say("Hello.")
    with anyio.fail_after(30):
        async with await Session.open(sealed_options(env=env)) as session:
            turns = [await session.run("Hello?")]
            server.fail_next(400)
            with pytest.raises(TurnError) as raised:
                await session.run("Hello?")
            turns.append(raised.value.turn)
    expires_at = datetime.fromtimestamp(now + 1_000_000, UTC)
    assert [turn.response.credential_expires_at for turn in turns] == [expires_at] * 2
    assert "secret" not in repr(turns)


async def test_a_turn_with_another_login_has_no_end(session: Session, server: LoopbackServer) -> None:
    """SES-130"""
    server.respond = say("Hello.")
    assert (await session.run("Hello?")).response.credential_expires_at is None
