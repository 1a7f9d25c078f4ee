"""The plugin for CLAI2. `scripts/check_pydantic_ai_tools.py` runs these tests, in an environment with CLAI2."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import UserError

from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel
from cc_types import LimitWindow, RateLimits

pytest.importorskip("pydantic_clai2.plugins", reason="run scripts/check_pydantic_ai_tools.py")

from pydantic_clai2.plugins import NoSettings, PluginHost
from rich.console import Console

from cc_model.provider import default_provider
from cc_model_clai2 import ClaudeCodePlugin, account_usage

RESET = datetime(2026, 11, 23, 18, tzinfo=UTC)


@pytest.fixture
def plugin(loopback: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[ClaudeCodePlugin]:
    for name, value in loopback.env().items():
        monkeypatch.setenv(name, value)
    default_provider.cache_clear()
    yield ClaudeCodePlugin(PluginHost(name="claude_code", console=Console(), settings={}), NoSettings())
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, default_provider().aclose()).result()
    default_provider.cache_clear()


async def test_prefix_resolves_to_a_model_that_answers(plugin: ClaudeCodePlugin, loopback: LoopbackServer) -> None:
    """MODEL-181."""
    (provider,) = plugin.get_model_providers()
    assert "claude-code:sonnet" in provider.names
    model = provider.resolve("sonnet")
    assert isinstance(model, ClaudeCodeModel)
    assert model is provider.resolve("sonnet")
    loopback.script(["Hello."])
    assert (await Agent(model).run("Hello?")).output == "Hello."


async def test_login_says_which_login_claude_code_has(plugin: ClaudeCodePlugin) -> None:
    """MODEL-182."""
    (login,) = plugin.get_logins()
    assert login.name == "claude-code"
    assert "Claude Code is logged in: api_key" in await login.handler()


async def test_missing_login_is_an_error_with_advice(plugin: ClaudeCodePlugin, monkeypatch: pytest.MonkeyPatch) -> None:
    """MODEL-182."""
    (login,) = plugin.get_logins()
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with pytest.raises(UserError, match=r"not logged in\. Set ANTHROPIC_API_KEY, or run .* and type /login"):
        await login.handler()


async def test_usage_lists_the_fullest_window_first(plugin: ClaudeCodePlugin) -> None:
    """MODEL-182: none before the first response, and none with an API key."""
    windows = (
        LimitWindow(kind="five_hour", utilization=0.42, resets_at=RESET),
        LimitWindow(kind="seven_day", utilization=1.2),
        LimitWindow(kind="overage", status="rejected"),
    )
    usage = account_usage(RateLimits(windows=windows))
    assert [(window.label, window.used_percent) for window in usage.windows] == [
        ("7d", 100), ("overage", 100), ("5h", 42),
    ]  # fmt: skip
    assert usage.windows[2].resets_at == RESET
    (login,) = plugin.get_logins()
    assert login.usage
    with pytest.raises(UserError, match="nothing was asked yet"):
        await login.usage(None)
    with pytest.raises(UserError, match="no plan limits"):
        account_usage(RateLimits())


def test_clai2_itself_answers_with_the_plugin(loopback: LoopbackServer, tmp_path: Path) -> None:
    """MODEL-181: from its command line."""
    env = {**os.environ, **loopback.env(), "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    database = ["--database", str(tmp_path / "clai2.sqlite")]

    def clai2(*arguments: str) -> str:
        command = [sys.executable, "-m", "pydantic_clai2", *database, *arguments]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    clai2("plugins", "add", "claude_code", "cc_model_clai2")
    loopback.script(["Hello."])
    assert "Hello." in clai2("-m", "claude-code:sonnet", "-p", "Hello?")
