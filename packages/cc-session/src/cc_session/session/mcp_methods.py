"""Methods of a session for its MCP servers."""

import asyncio
from collections.abc import Mapping, Sequence

from claude_agent_sdk import McpServerStatus

from ..background import on_background
from ..mcp.servers import McpServer
from ..timeouts import checked_seconds
from .core import SessionCore

__all__ = ["McpMethods"]


class McpMethods:
    """MCP methods of `Session`."""

    _core: SessionCore

    async def wait_mcp(
        self,
        names: Sequence[str] | None = None,
        *,
        timeout: float = 30.0,  # noqa: ASYNC109  # of the wait, and named in the error
        require: bool = True,
    ) -> list[McpServerStatus]:
        """Wait until MCP servers are ready; a turn that begins before has to wait for them itself.

        Args:
            names: Names of the servers; None for all of the session.
            timeout: Seconds to wait.
            require: If true, a server that is not connected by then, or has failed, is an error.

        Raises:
            McpServerFailedError: One is not connected; has its own message.
            ValueError: The session has no server of that name.
        """
        seconds = checked_seconds(timeout, "wait_mcp")
        return await on_background(self._core.extensions.mcp.wait, names, seconds=seconds, require=require)

    async def mcp_status(self) -> list[McpServerStatus]:
        """Return the state of all MCP servers, with their tools. A killed one is connected until it is called again."""
        return await on_background(self._core.extensions.mcp.status)

    async def set_mcp_servers(self, servers: Mapping[str, McpServer], *, require: bool = True) -> list[McpServerStatus]:
        """Replace the MCP servers given to `open()` or set here before, and wait until they are ready.

        The next request lists only the tools of the new ones. Until they are ready, or have failed, the CLI answers no
        other control request.

        Raises:
            McpServerFailedError: One is not ready within `timeouts.mcp` seconds, or has failed, and `require` is set.
                The set is replaced all the same.
            ValueError: A name or a value is invalid.
            TypeError: An object is no server.
        """
        loop = asyncio.get_running_loop()
        return await on_background(self._core.extensions.serve, servers, require=require, loop=loop)

    async def reconnect_mcp(self, name: str) -> None:
        """Reconnect an MCP server.

        Raises:
            McpServerFailedError: It failed, or there is none of that name.
        """
        await on_background(self._core.extensions.mcp.reconnect, name)

    async def toggle_mcp(self, name: str, enabled: bool) -> None:
        """Switch an MCP server on or off. The next request lists its tools, or does not.

        Raises:
            McpServerFailedError: It could not be connected, or there is none of that name.
        """
        await on_background(self._core.extensions.mcp.toggle, name, enabled)
