"""What the integration tests share: models on the loopback API, and the check that nothing is left behind."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psutil
import pytest

from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider


@pytest.fixture(autouse=True)
def nothing_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """After each test there is no CLI process, and nothing in the folder for temporary files."""
    tmp_path_factory.getbasetemp()  # pytest's own folder is made at its first use, which must not be in a test's
    # Not below `tmp_path`, whose length leaves too little for the path of a socket.
    folder = Path(tempfile.mkdtemp(prefix="t-"))
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield
    _, alive = psutil.wait_procs(psutil.Process().children(recursive=True), timeout=5)
    left = [*folder.iterdir()]
    shutil.rmtree(folder)
    assert not alive, f"processes left: {alive}"
    assert not left


@pytest.fixture
async def provider(nothing_is_left: None, loopback: LoopbackServer) -> AsyncIterator[ClaudeCodeProvider]:
    """Claude Code on the loopback API; failures are not repeated."""
    async with ClaudeCodeProvider(env=loopback.env(), max_retries=0) as provider:
        yield provider


@pytest.fixture
def model(provider: ClaudeCodeProvider) -> ClaudeCodeModel:
    return ClaudeCodeModel(provider=provider)
