"""MCP servers in this process, added to a running CLI. The only module that uses SDK internals for that.

The SDK's client adds the servers in the options when it connects, and has no method for more. The table, and the class
of the entries, are private; `tests/test_sdk_internals.py` fails when they change.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from claude_agent_sdk import ClaudeSDKClient
from claude_agent_sdk._internal.sdk_mcp_bridge import SdkMcpBridge
from mcp.server.lowlevel import Server
from typing_extensions import override

__all__ = ["add_bridge", "remove_bridge"]

T = TypeVar("T")


def add_bridge(client: ClaudeSDKClient, name: str, server: Server[Any], loop: asyncio.AbstractEventLoop | None) -> None:
    """Make a connected client forward CLI messages to the server `name`, which runs on `loop`."""
    _table(client)[name] = _Bridge(name, server, loop)


async def remove_bridge(client: ClaudeSDKClient, name: str) -> None:
    """End an added server. The SDK limits the time."""
    bridge = _table(client).pop(name, None)
    if bridge is not None:
        await bridge.aclose()


def _table(client: ClaudeSDKClient) -> dict[str, SdkMcpBridge]:
    query = client._query  # pyright: ignore[reportPrivateUsage]
    return query._sdk_mcp_bridges if query is not None else {}  # pyright: ignore[reportPrivateUsage]


class _Bridge(SdkMcpBridge):
    """Bridge that runs a server on the owner's loop, or on the calling loop if that has been closed."""

    def __init__(self, name: str, server: Server[Any], loop: asyncio.AbstractEventLoop | None) -> None:
        super().__init__(name, server)
        self._loop = loop
        self._inner = SdkMcpBridge(name, server)
        self._greetings: list[dict[str, Any]] = []

    @override
    async def handle(self, message: dict[str, Any]) -> dict[str, Any] | None:
        if self._loop is not None and self._loop.is_closed():
            await self._move()
        if message.get("method") == "initialize":
            self._greetings.clear()
        if message.get("method") in ("initialize", "notifications/initialized"):
            self._greetings.append(message)
        return await self._there(self._inner.handle(message))

    @override
    async def aclose(self) -> None:
        if self._loop is None or not self._loop.is_closed():
            await self._there(self._inner.aclose())

    async def _move(self) -> None:
        """Restart the server here with the same handshake, so that the CLI does not notice."""
        self._loop = None
        self._inner = SdkMcpBridge(self.name, self._server)
        for message in self._greetings:
            await self._inner.handle(message)

    async def _there(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop is None or self._loop is asyncio.get_running_loop():
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))
