"""Fixtures: the real SDK over a scripted transport, and small SDKs with a difference each."""

import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias, cast

import anyio
import pytest
from claude_agent_sdk import Transport

Frame: TypeAlias = dict[str, Any]
OddSDK: TypeAlias = Callable[..., str]


class ScriptedTransport(Transport):
    """A transport that answers the handshake, and the first prompt with the given frames."""

    def __init__(self, *frames: Frame) -> None:
        self._frames = frames
        self._send, self._receive = anyio.create_memory_object_stream[Frame](100)

    async def connect(self) -> None:
        pass

    async def write(self, data: str) -> None:
        for line in data.splitlines():
            frame = cast("Frame", json.loads(line))
            if frame["type"] == "control_request":
                await self._send.send(_answer(frame["request_id"]))
            elif frame["type"] == "user":
                for reply in self._frames:
                    await self._send.send(reply)
                self._send.close()

    async def _read(self) -> AsyncIterator[Frame]:
        async for frame in self._receive:
            yield frame

    def read_messages(self) -> AsyncIterator[Frame]:
        return self._read()

    async def close(self) -> None:
        self._send.close()
        self._receive.close()

    def is_ready(self) -> bool:
        return True

    async def end_input(self) -> None:
        pass


def _answer(request_id: str) -> Frame:
    response: Frame = {"subtype": "success", "request_id": request_id, "response": {}}
    return {"type": "control_response", "response": response}


@pytest.fixture
def transport() -> Callable[..., Transport]:
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
