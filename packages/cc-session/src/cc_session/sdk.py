"""Private parts of claude-agent-sdk and mcp: the one place that touches them.

Each has no public way, and a test in `tests/test_sdk_internals.py` that notices when it changes:

- The parser error, which the SDK does not export.
- The transport that starts the CLI. No public one starts it with the options on the command line and lets us have the
  exit code.
- The client tables of hooks and of in-process MCP servers. It has no method that adds to them after the start.
- The low-level server of mcp's server class, which alone runs over our streams.
"""

from typing import Any

from claude_agent_sdk import ClaudeSDKClient, HookCallback
from claude_agent_sdk._errors import MessageParseError
from claude_agent_sdk._internal.sdk_mcp_bridge import SdkMcpBridge
from claude_agent_sdk._internal.transport import subprocess_cli
from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer

__all__ = [
    "MessageParseError", "SdkMcpBridge", "SubprocessCLITransport", "add_hook", "forget_children", "low_level_server",
    "mcp_bridges",
]  # fmt: skip


def add_hook(client: ClaudeSDKClient, identity: str, callback: HookCallback) -> None:
    """Let a connected client call `callback` when the CLI calls the hook with this id."""
    query = client._query  # pyright: ignore[reportPrivateUsage]
    if query is not None:
        query.hook_callbacks[identity] = callback


def mcp_bridges(client: ClaudeSDKClient) -> dict[str, SdkMcpBridge]:
    """Return the table of a client's in-process servers, to which it forwards the CLI messages."""
    query = client._query  # pyright: ignore[reportPrivateUsage]
    return query._sdk_mcp_bridges if query is not None else {}  # pyright: ignore[reportPrivateUsage]


def low_level_server(server: MCPServer[Any]) -> Server[Any]:
    """Return the server that runs over streams."""
    return server._lowlevel_server  # pyright: ignore[reportPrivateUsage]


def forget_children() -> None:
    """Keep the SDK from ending the processes of this process's parent at exit, in a fork."""
    subprocess_cli._ACTIVE_CHILDREN.clear()  # pyright: ignore[reportPrivateUsage]
