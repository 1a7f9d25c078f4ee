"""Fixtures: the real SDK over a scripted transport, and small SDKs with a difference each."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from .scripted_transport import ScriptedTransport

OddSDK: TypeAlias = Callable[..., str]


@pytest.fixture
def transport() -> type[ScriptedTransport]:
    return ScriptedTransport


@pytest.fixture
def odd_sdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OddSDK]:
    """Return a function that writes an SDK with the given files and returns its name."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    def make(**files: str) -> str:
        internal = tmp_path / "odd_sdk" / "_internal"
        internal.mkdir(parents=True)
        (internal / "__init__.py").touch()
        (internal.parent / "__init__.py").write_text(files.pop("init", "__version__ = '9.9'"), "utf-8")
        for name, text in files.items():
            (internal / f"{name}.py").write_text(text, "utf-8")
        return "odd_sdk"

    yield make
    for name in [name for name in sys.modules if name.split(".")[0] == "odd_sdk"]:
        del sys.modules[name]
