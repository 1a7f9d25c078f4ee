"""What a session is opened with beside the SDK's options: a policy, hooks and MCP servers.

Before the process starts they are checked and put into the options; when it runs, what options cannot say is said.
"""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions

from ..hooks.callbacks import Callers
from ..hooks.hook import Hook
from ..mcp.control import McpControl
from ..mcp.servers import McpServer, WireServers, wire_servers
from ..mcp.tool_calls import SERVER_NAME
from ..policy.gate import PolicyGate
from ..policy.policy import Policy
from ..process.connection import Connection
from ..process.options import is_sealed
from ..timeouts import Timeouts
from .hook_options import check_mode, check_together, hooked, turn_hooks_on, without_bare

__all__ = ["Equipment"]


class Equipment:
    """The policy, hooks and MCP servers of one session. Made on the loop of its caller.

    Raises:
        ValueError: They do not go together with the options, or an MCP server's name or value makes no sense.
        TypeError: Something is no hook, no policy or no MCP server.
    """

    def __init__(
        self,
        options: ClaudeAgentOptions,
        *,
        policy: Policy | None = None,
        hooks: Sequence[Hook[Any]] = (),
        mcp_servers: Mapping[str, McpServer] | None = None,
        require_mcp: bool = True,
        has_tools: bool = False,
        timeouts: Timeouts,
    ) -> None:
        check_mode(options)
        if not_hooks := [hook for hook in hooks if type(hook) is not Hook]:
            raise TypeError(f"a hook is made by hook() or command_hook(), not {not_hooks[0]!r}")
        self._loop = asyncio.get_running_loop()
        self.callers = Callers(self._loop)
        """Where hooks and permission callbacks are called."""
        self._require_mcp = require_mcp
        self._has_policy = policy is not None
        self._has_hooks = bool(policy is not None or hooks or options.hooks)
        self._others = options.mcp_servers if isinstance(options.mcp_servers, dict) else {}
        self._keeps = [name for name, server in self._others.items() if server.get("type") == "sdk"]
        if has_tools:
            self._keeps.append(SERVER_NAME)
        self._servers = None if mcp_servers is None else self.checked(mcp_servers)
        # Who gives a sealed process a server wants its tools used: there is no other reason to give it one.
        self._breaks_seal = mcp_servers is not None and is_sealed(options)
        self._mcp: McpControl | None = None
        gate = None if policy is None else PolicyGate(policy, options.can_use_tool, self.callers, timeouts)
        if self._has_hooks:
            check_together(options, policy)
            options = without_bare(options)
        options = hooked(options, hooks, gate, self.callers)
        if self._breaks_seal and options.max_turns == 1:
            # The CLI's own loop goes on after a tool, which takes a second API call.
            options = replace(options, max_turns=None)
        # How long the CLI gives a server to be connected, in milliseconds.
        patience = {"MCP_TIMEOUT": str(math.ceil(timeouts.mcp * 1000))}
        self.options = replace(options, env={**patience, **options.env})
        """The options to start the process with."""

    def checked(self, servers: Mapping[str, McpServer]) -> WireServers:
        """Return servers as the CLI takes them. Raises what the class raises."""
        return wire_servers(servers, taken={*self._others, SERVER_NAME})

    async def unpack(self, connection: Connection) -> None:
        """Say to the CLI, now that it runs, what the options did not.

        Raises:
            HooksDisabledError: The CLI would not run the hooks.
            McpServerFailedError: A server did not start.
        """
        self.callers.mark = connection.mark
        allows_tools = self._breaks_seal and not self._has_policy
        self._mcp = McpControl(connection, keeps=self._keeps, allows_tools=allows_tools)
        if self._has_hooks:
            await turn_hooks_on(connection, has_policy=self._has_policy)
        if self._servers is not None:
            await self._mcp.replace(self._servers, require=self._require_mcp, loop=self._loop)
        # That is how it begins, and not what somebody did to it.
        connection.transport.traces.clear()

    @property
    def mcp(self) -> McpControl:
        """The MCP servers of the process that runs."""
        assert self._mcp is not None  # noqa: S101  # nobody gets hold of a session before it is open
        return self._mcp
