"""Logins that expire while processes share them."""

import asyncio
import json
import sys
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from cc_loopback import LoopbackServer
from cc_session import PoolLimits, SessionPool, TurnError, sealed_options
from cc_types import ClaudeCodeError

from .conftest import say, until
from .token_api import TokenAPI

pytestmark = [
    pytest.mark.slow,
    # On macOS the login is in the keychain.
    pytest.mark.skipif(sys.platform != "linux", reason="the login is a file on Linux"),
]

SIZE = 8


@pytest.fixture
def tokens(tmp_path: Path, server: LoopbackServer) -> TokenAPI:
    server.respond = say("Hello, you.")
    return TokenAPI(tmp_path, server)


def pool_of(size: int, env: dict[str, str]) -> SessionPool:
    return SessionPool(sealed_options(model="claude-sonnet-5", env=env), limits=PoolLimits(size=size, prewarm=0))


@pytest.mark.parametrize("delay", [0.1, 12.0])
async def test_the_processes_of_a_pool_renew_an_expired_login_once(tokens: TokenAPI, delay: float) -> None:
    """SES-101: also if the endpoint takes longer than a CLI waits for another."""
    tokens.delay = delay
    accounts: set[str] = set()

    async def watch() -> None:
        while True:
            accounts.add(json.dumps(json.loads((tokens.config / ".claude.json").read_text()).get("oauthAccount")))
            await asyncio.sleep(0.002)

    with anyio.fail_after(90):
        async with tokens.served() as env, pool_of(SIZE, env) as pool:
            watcher = asyncio.create_task(watch())
            await pool.warm(SIZE)
            turns = await asyncio.gather(*(pool.run("Hello.") for _ in range(SIZE)))
            assert not watcher.done()
            watcher.cancel()
    assert [turn.text for turn in turns] == ["Hello, you."] * SIZE
    assert tokens.renewals == [True]
    assert accounts == {'{"accountUuid": "someone"}'}


async def test_a_renewal_ends_before_its_process_is_closed(tokens: TokenAPI) -> None:
    """SES-101: killed meanwhile, the process would have used up the refresh token for nothing."""
    tokens.delay = 1.0
    with anyio.fail_after(60):
        async with tokens.served() as env:
            async with pool_of(1, env) as pool:
                turn = asyncio.create_task(pool.run("Never answered."))
                await until(lambda: tokens.renewals)
            with suppress(ClaudeCodeError):
                await turn
            async with pool_of(1, env) as pool:
                assert (await pool.run("Hello.")).text == "Hello, you."
    assert tokens.renewals == [True]


async def test_a_login_that_has_ended_names_the_command(tokens: TokenAPI) -> None:
    """SES-101"""
    tokens.write_login("used before")
    with anyio.fail_after(60):
        async with tokens.served() as env, pool_of(1, env) as pool:
            with pytest.raises(TurnError, match=r"session expired.* type /login") as raised:
                await pool.run("Hello.")
    assert raised.value.kind == "auth"
    assert tokens.renewals == [False]
