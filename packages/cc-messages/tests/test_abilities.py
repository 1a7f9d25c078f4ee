"""A CLI's abilities are probed once, without the API."""

from typing import Any, cast

import pytest

from cc_messages.process.abilities import Abilities
from cc_session import Session
from cc_types import CLIConnectionError, ControlRequestError


class PretendedSession:
    """A session, as far as the probe uses it."""

    info = {"claude_code_version": "2.1.1"}

    def __init__(self, *, takes_env: bool = True, can_rewind: bool = True) -> None:
        self._takes_env, self._can_rewind = takes_env, can_rewind
        self._env: dict[str, str] = {}
        self.requests: list[str] = []

    async def set_env(self, env: dict[str, str]) -> None:
        self.requests.append("set_env")
        self._env |= env if self._takes_env else {}

    async def control(self, subtype: str) -> dict[str, Any]:
        self.requests.append(subtype)
        return {"effective": {"env": self._env}}

    async def rewind(self, _uuid: str) -> bool:
        self.requests.append("rewind")
        if not self._can_rewind:
            raise ControlRequestError(subtype="rewind_conversation", message="Unsupported control request subtype")
        return False


async def probe(abilities: Abilities, session: PretendedSession) -> None:
    await abilities.probe(cast(Session, session))


async def test_a_cli_without_a_rewind_is_used_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    """MSG-79"""
    abilities = Abilities()
    for _ in range(2):
        await probe(abilities, PretendedSession(can_rewind=False))
    assert not abilities.can_rewind
    [warning] = caplog.messages
    assert "Claude Code 2.1.1 cannot drop" in warning


async def test_a_cli_that_takes_no_parameters_is_refused() -> None:
    """MSG-79"""
    with pytest.raises(CLIConnectionError, match=r"Claude Code 2\.1\.1 does not take .* 2\.1\.139 or newer"):
        await probe(Abilities(), PretendedSession(takes_env=False))
