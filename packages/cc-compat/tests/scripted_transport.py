"""A transport without a CLI, for any version of the SDK."""

import json
from collections.abc import AsyncIterator
from typing import Any, TypeAlias, cast

import anyio

Frame: TypeAlias = dict[str, Any]


class ScriptedTransport:
    """Answers the handshake, and the first prompt with the given frames."""

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
