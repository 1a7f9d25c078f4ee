"""The plan of a process in which Claude Code runs the loop, with the conversation in its history."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import cast

from claude_agent_sdk import ClaudeAgentOptions
from typing_extensions import override

from cc_session import Content, McpServer, McpServerFailedError
from cc_session.internals import Launch, PooledSession, SettingValues, Worker, calling_freely

from ..api.message import Answer
from ..api.request import MessagesRequest
from ..context.claude_code_tools import ClaudeCodeTools
from ..context.tool_server_key import ToolServerKey
from ..process.abilities import Abilities
from ..process.plan import RequestPlan
from .approvals import Approvals
from .permissions import PermissionAsker
from .request import LoopRequest
from .skill_folder import with_skills
from .tool_server import ToolServer
from .turn_calls import TurnCalls
from .turn_reader import LoopReading

__all__ = ["LoopPlan"]


class LoopPlan(RequestPlan):
    """The CLI calls tools by itself, in a conversation that is written before the answer and removed after it.

    Args:
        key: The caller's tools that the CLI calls at first; None if there are none.
        own_tools: The CLI's own tools; None if it has none.
        abilities: The CLI's abilities.
    """

    has_history = True
    _session: PooledSession
    _request: LoopRequest
    _reading: LoopReading | None = None

    def __init__(self, key: ToolServerKey | None, own_tools: ClaudeCodeTools | None, abilities: Abilities) -> None:
        self._key, self._own_tools, self._abilities = key, own_tools, abilities
        self._asker = PermissionAsker()
        self._server: ToolServer | None = None

    @override
    async def open(self, launch: Launch, options: ClaudeAgentOptions, resources: AsyncExitStack) -> PooledSession:
        resources.push_async_callback(self._stop)
        if self._key is not None:
            options = calling_freely(options, self._key.name)
        policy = None
        if self._own_tools is not None:
            options = with_skills(options, self._own_tools, resources)
            policy = self._asker.policy(self._own_tools)
        # The servers come with the first request.
        start = partial(Worker.open, replace(launch, policy=policy, mcp_servers={}))
        # Programs that the CLI's own tools start would have the options that save memory, too.
        self._session = await (start(options) if self._own_tools is not None else self._abilities.open(start, options))
        resources.push_async_callback(self._session.close)
        return self._session

    @override
    async def prepare(self, worker: Worker, settings: SettingValues, request: MessagesRequest) -> None:
        assert isinstance(request, LoopRequest)  # noqa: S101  # the launch's key has its tools
        self._request = request
        if request.tool_server is None:
            await super().prepare(worker, settings, request)
        else:
            await self._prepare_with_tools(worker, settings, request.tool_server)
        for message in request.messages[:-1]:
            if message.role == "user":
                await self._session.add_user(message.blocks())
            else:
                await self._session.add_assistant(message.blocks(), model=request.process_model)

    async def _prepare_with_tools(self, worker: Worker, settings: SettingValues, key: ToolServerKey) -> None:
        earlier, self._server, self.tool_server = self._server, None, None
        server = earlier if earlier is not None and earlier.key == key else ToolServer(key)
        mcp_servers = dict(cast("Mapping[str, McpServer]", settings.get("mcp_servers") or {}))
        try:
            mcp_servers[key.name] = await server.start()
            if not await worker.apply({**settings, "mcp_servers": mcp_servers}):
                await worker.ping()
            elif key.transport == "stdio":
                await self._check_tools(key, worker.launch.timeouts.mcp)
            self._server, self.tool_server = server, key
        finally:
            for unused in {earlier, server} - {self._server}:
                if unused is not None:
                    await unused.stop()

    @override
    def prompt(self) -> Content:
        return self._request.messages[-1].blocks()

    @override
    def reading(self, answer: Answer) -> LoopReading:
        context = self._request.context
        calls, approvals = TurnCalls(), Approvals.of(self._own_tools, self._request.messages)
        self._asker.bind(calls, context, approvals)
        if self._server is not None:
            self._server.bind(calls, context.call)
        self._reading = LoopReading(answer, self._request, approvals, calls, self._session, self._server)
        return self._reading

    @override
    async def forget(self, *, was_blocked: bool = False) -> None:
        self._asker.unbind()
        reading, self._reading = self._reading, None
        if self._server is not None:
            self._server.unbind()
        await self._session.reset()
        # A bridge that has exited is started again: the CLI tries that once, with the next call, and then never again.
        server = self._server
        if server is not None and reading is not None and server.has_missed(reading.failed_calls):
            await self._session.reconnect_mcp(server.key.name)

    async def _stop(self) -> None:
        self._asker.unbind()
        if self._server is not None:
            await self._server.stop()

    async def _check_tools(self, key: ToolServerKey, seconds: float) -> None:
        """Raise McpServerFailedError if the CLI did not get all tools.

        If the bridge dies during the connection, the CLI keeps the tools received so far, and would answer calls to the
        others itself: with "no such tool".
        """
        [status] = await self._session.wait_mcp([key.name], timeout=seconds)
        if missing := key.names() - {tool["name"] for tool in status.get("tools", [])}:
            reason = f"the bridge ended before Claude Code had listed {', '.join(sorted(missing))}"
            raise McpServerFailedError({key.name: reason})
