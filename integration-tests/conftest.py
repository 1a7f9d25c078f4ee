"""What the integration tests share: a pair of models, one on the API itself and one through Claude Code."""

import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from anthropic import AsyncAnthropic
from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True, scope="session")
def private_temp_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Everything that is written to a temp folder in these tests goes to one that is looked into at the end."""
    folder = tmp_path_factory.mktemp("tmp")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))
        patch.setattr("tempfile.tempdir", str(folder))
        yield folder


@pytest.fixture(autouse=True)
def nothing_is_left(private_temp_folder: Path) -> Iterator[None]:
    """After each test there is no CLI process and no file that was not there before."""
    yield
    left = [child for child in psutil.Process().children(recursive=True) if "claude" in child.name()]
    _, alive = psutil.wait_procs(left, timeout=5)
    assert not alive, f"processes left: {alive}"
    assert not list(private_temp_folder.iterdir())


@pytest.fixture
async def provider(loopback: LoopbackServer) -> AsyncIterator[ClaudeCodeProvider]:
    async with ClaudeCodeProvider(env=loopback.env(), max_retries=0) as provider:
        yield provider


@pytest.fixture
def model(provider: ClaudeCodeProvider) -> ClaudeCodeModel:
    return ClaudeCodeModel(provider=provider)


@dataclass
class Pair:
    """The same model twice: straight to the loopback API, and through Claude Code to the same API."""

    api: LoopbackServer
    provider: ClaudeCodeProvider

    def direct(self, name: str) -> AnthropicModel:
        client = AsyncAnthropic(api_key="key", base_url=self.api.url, max_retries=0)
        return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=client))

    def through(self, name: str) -> ClaudeCodeModel:
        return ClaudeCodeModel(name, provider=self.provider)


@pytest.fixture
def pair(loopback: LoopbackServer, provider: ClaudeCodeProvider) -> Pair:
    return Pair(loopback, provider)


@pytest.fixture(autouse=True, scope="session")
def no_login_of_this_machine() -> Iterator[None]:
    """No test may use a login or a key that happens to be here."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [*os.environ]:
            if name.startswith(("ANTHROPIC_", "CLAUDE_")):
                patch.delenv(name)
        yield


