"""A process in which Claude Code runs the loop, with the conversation in its history, and its tools and skills."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from os import environ
from typing import Self, cast

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage
from typing_extensions import override

from cc_session import Content, McpServer, McpServerFailedError
from cc_session.internals import Launch, PooledSession, SettingValues, calling_freely

from ..api.request import MessagesRequest
from ..process.api_log import APILog
from ..process.launch import RequestLaunch
from ..process.process import RequestProcess
from ..process.turn_reader import Reading
from .approvals import Approvals, approved_calls
from .claude_code_tools import ClaudeCodeTools, PermissionAsker
from .cli_tools import ToolServerKey
from .request import LoopRequest
from .skill_folder import SkillFolder, skill_places, with_skills
from .tool_server import ToolServer
from .turn_calls import TurnCalls
from .turn_reader import LoopReading

__all__ = ["LoopProcess"]


class LoopProcess(RequestProcess):
    """A process for requests with tools that the CLI calls."""

    _has_history = True
    _caller: PermissionAsker
    _tools: ToolServer | None = None
    _belongings: AsyncExitStack
    """The folder and the session, closed with the process."""

    @override
    @classmethod
    async def start(cls, launch: Launch) -> Self:
        launch = cast(RequestLaunch, launch)
        caller, log = PermissionAsker(), APILog()
        async with AsyncExitStack() as belongings:
            options = replace(launch.options, stderr=log.take)
            if launch.tool_server is not None:
                options = calling_freely(options, launch.tool_server.name)
            if launch.claude_code_tools is not None:
                options = _with_skills(options, launch.claude_code_tools, belongings)
            policy = None if launch.claude_code_tools is None else caller.policy(launch.claude_code_tools)
            # The servers come with the first request.
            start = partial(cls.open, replace(launch, policy=policy, mcp_servers={}))
            # Programs that its own tools start would have the options that save memory, too.
            has_own_tools = launch.claude_code_tools is not None
            session = await (start(options) if has_own_tools else launch.abilities.open(start, options))
            belongings.push_async_callback(session.close)
            process = cls(launch, session, log)
            process._caller, process._belongings = caller, belongings.pop_all()
            return process

    @property
    @override
    def has_run_tools(self) -> bool:
        return self._tools is not None and self._tools.has_run

    @override
    def matches(self, launch: Launch) -> bool:
        server, tools = cast(RequestLaunch, launch).tool_server, self._tools
        settings = {name: value for name, value in launch.settings.items() if name != "mcp_servers"}
        return (tools and tools.key) == server and not self.session.settings.missing(settings)

    @override
    async def take(self, launch: Launch, request: MessagesRequest) -> None:
        await super().take(launch, request)
        model = launch.options.model or ""
        for message in _loop(request).messages[:-1]:
            if message.role == "user":
                await self.session.add_user(message.blocks())
            else:
                await self.session.add_assistant(message.blocks(), model=model)

    @override
    async def reset(self) -> None:
        try:
            await super().reset()
        finally:
            self._caller.unbind()
            if self._tools is not None:
                self._tools.unbind()

    @override
    async def close(self) -> None:
        try:
            await super().close()
        finally:
            if self._tools is not None:
                await self._tools.stop()
            await self._belongings.aclose()

    @override
    async def apply(self, wanted: SettingValues) -> bool:
        key = cast(RequestLaunch, self.launch).tool_server
        if key is None:
            return await super().apply(wanted)
        earlier, self._tools = self._tools, None
        tools = earlier if earlier is not None and earlier.key == key else ToolServer(key)
        servers = dict(cast("Mapping[str, McpServer]", wanted.get("mcp_servers") or {}))
        try:
            servers[key.name] = await tools.start()
            has_changed = await super().apply({**wanted, "mcp_servers": servers})
            if has_changed and key.transport == "stdio":
                await _check_tools(self.session, key, self.launch.timeouts.mcp)
            self._tools = tools
        finally:
            for server in {earlier, tools} - {self._tools}:
                if server is not None:
                    await server.stop()
        return has_changed

    @override
    def _new_reading(self) -> Reading:
        request = cast(MessagesRequest, self._request)
        context, loop = request.context, _loop(request)
        assert context is not None  # noqa: S101  # or there would be no loop
        calls, approvals = TurnCalls(), _approvals(loop)
        self._caller.bind(calls, context, approvals)
        if self._tools is not None:
            self._tools.bind(calls, context.call)
        names = context.tools.names if context.tools is not None else frozenset[str]()
        doubtful = frozenset[str]() if loop.claude_code_tools is None else loop.claude_code_tools.unknown_names
        return LoopReading(loop.tool_server, names, approvals, doubtful, calls)

    @override
    def _prompt(self) -> Content:
        return _loop(cast(MessagesRequest, self._request)).messages[-1].blocks()

    @override
    def _on_refusal(self) -> None:
        pass  # the CLI's second attempt is a part of its loop

    @override
    def _with_cost(self, result: ResultMessage) -> ResultMessage:
        # The CLI reports the cost of the process since its start, over all requests.
        spent = self.session.last_spent
        models = {name: usage.model_dump(by_alias=True) for name, usage in spent.models.items()}
        return replace(result, total_cost_usd=spent.cost_usd, model_usage=models)

    @override
    async def _forget(self) -> None:
        await self.session.reset()
        await self._connect_tools()

    async def _connect_tools(self) -> None:
        """Start a bridge again that has exited. The CLI tries that once, with the next call, and then never again."""
        server = cast(RequestLaunch, self.launch).tool_server
        if server is None or self._tools is None or not isinstance(self._reading, LoopReading):
            return
        if self._tools.has_missed(self._reading.failed_calls):
            await self.session.reconnect_mcp(server.name)


async def _check_tools(session: PooledSession, key: ToolServerKey, seconds: float) -> None:
    """Raise McpServerFailedError if the CLI did not get all tools.

    If its bridge dies during the connection, it keeps the tools received so far, and would answer all later calls of
    the others itself: with "no such tool".
    """
    [status] = await session.wait_mcp([key.name], timeout=seconds)
    if missing := key.names() - {tool["name"] for tool in status.get("tools", [])}:
        reason = f"the bridge ended before Claude Code had listed {', '.join(sorted(missing))}"
        raise McpServerFailedError({key.name: reason})


def _with_skills(
    options: ClaudeAgentOptions, claude_code_tools: ClaudeCodeTools, belongings: AsyncExitStack
) -> ClaudeAgentOptions:
    if not claude_code_tools.skills:
        return options
    env: Mapping[str, str] = {**environ, **options.env}
    folder = SkillFolder(claude_code_tools.skills, skill_places(options.cwd, env))
    # With the folder, which is removed when it is garbage-collected.
    belongings.callback(SkillFolder.close, folder)
    return with_skills(options, claude_code_tools, folder)


def _loop(request: MessagesRequest) -> LoopRequest:
    assert request.loop is not None  # noqa: S101  # or the pool would have another kind of process for it
    return request.loop


def _approvals(loop: LoopRequest) -> Approvals | None:
    claude_code_tools = loop.claude_code_tools
    if claude_code_tools is None or not claude_code_tools.defers or claude_code_tools.policy is None:
        return None
    return Approvals(claude_code_tools.policy, approved_calls(loop.messages))
