"""How a process is started: sealed, but for what its requests say beside their bodies."""

import os
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from claude_agent_sdk import ClaudeAgentOptions

from cc_session import McpServer, Policy, Session, Timeouts, sealed_options, with_tool_server
from cc_types import CLIConnectionError, JsonValue

from .api_log import LOG_ARGUMENTS, LOG_ENV, APILog
from .counting import APIAccess
from .own_tools import Caller, OwnTools, with_own_tools
from .request import LaunchKey
from .single_call import LIMIT_ENV
from .skill_folder import SkillFolder, skill_places
from .tool_server import ToolServer, ToolServerKey
from .worker import Worker

__all__ = ["Launcher"]

# What a tool did cannot be done again, so it is the CLI that repeats a failed API call of its loop: as often as the
# API's own clients do.
_LOOP_ENV = {"CLAUDE_CODE_MAX_RETRIES": "2"}

# The model gets the tools under the names that the request has for them.
_PLAIN_NAMES = {"CLAUDE_AGENT_SDK_MCP_NO_PREFIX": "1"}


class Launcher:
    """Starts processes; knows nothing of the transport, so that the transport can be forgotten while they run."""

    def __init__(
        self, env: Mapping[str, str], cwd: str | Path | None, cli_path: str | Path | None, timeouts: Timeouts
    ) -> None:
        self._env, self._cwd, self._cli_path, self._timeouts = dict(env), cwd, cli_path, timeouts
        self._models: JsonValue = None

    @property
    def env(self) -> Mapping[str, str]:
        """The environment of the processes, as far as it is the caller's."""
        return ChainMap(self._env, os.environ)

    @property
    def api(self) -> APIAccess:
        """The access to the API that the processes have.

        Raises:
            APIError: It is not one that could be used beside them.
        """
        return APIAccess.of(self._env)

    async def models(self) -> JsonValue:
        """What Claude Code says which models there are, as any process did when it started.

        Raises:
            ClaudeCodeError: None has been started, and none could be.
        """
        if self._models is None:
            options = sealed_options(env=self._env, cwd=self._cwd, cli_path=self._cli_path)
            await (await self._open(options)).close()
        return self._models

    async def open(self, launch: LaunchKey) -> Worker:
        """Start a process and what it needs beside it.

        Raises:
            ClaudeCodeError: It did not start; nothing is left of it.
        """
        skills = self._skills(launch.own)
        try:
            return await self._open_with(launch, skills)
        except BaseException:
            if skills is not None:
                skills.remove()
            raise

    async def _open_with(self, launch: LaunchKey, skills: SkillFolder | None) -> Worker:
        caller, log = Caller(), APILog()
        options = replace(self._options(launch, skills), stderr=log.take)
        if launch.tool_server is None:
            return Worker(launch, await self._session(options, launch.own, caller), caller, log=log, skills=skills)
        tools = ToolServer(launch.tool_server)
        try:
            server = await tools.start()
            options = with_tool_server(options, launch.tool_server.name, server)
            session = await self._session(options, launch.own, caller)
            if launch.tool_server.transport == "stdio":
                await self._check_tools(session, launch.tool_server)
            return Worker(launch, session, caller, tools, log, skills)
        except BaseException:
            await tools.stop()
            raise

    async def _check_tools(self, session: Session, key: ToolServerKey) -> None:
        """Close the session and raise if the CLI did not get all tools.

        If its bridge dies while it connects, it takes what it has got, and would itself answer all later calls of the
        others: that there is no such tool.
        """
        try:
            [status] = await session.wait_mcp([key.name], timeout=self._timeouts.mcp)
            if missing := key.names() - {tool["name"] for tool in status.get("tools", [])}:
                raise CLIConnectionError(
                    reason=f"the bridge ended before Claude Code knew {', '.join(sorted(missing))}"
                )
        except BaseException:
            await session.close()
            raise

    def _skills(self, own: OwnTools | None) -> SkillFolder | None:
        if own is None or not own.skills:
            return None
        return SkillFolder(own.skills, skill_places(own.cwd or self._cwd, self.env))

    def _options(self, launch: LaunchKey, skills: SkillFolder | None) -> ClaudeAgentOptions:
        env = {**self._env}
        if launch.betas:
            env["ANTHROPIC_BETAS"] = ",".join(launch.betas)
        options = sealed_options(
            system_prompt=launch.system, model=launch.model, env=env, cwd=self._cwd, cli_path=self._cli_path
        )
        if launch.own is None:  # or programs that its tools start would log their API calls, too
            arguments = {**options.extra_args, **LOG_ARGUMENTS}
            options = replace(options, env={**LOG_ENV, **options.env}, extra_args=arguments)
        if not launch.has_loop:
            return replace(options, env={**options.env, **LIMIT_ENV, **self._env})
        options = replace(options, env={**options.env, **_LOOP_ENV, **_names(launch.tool_server), **self._env})
        return options if launch.own is None else with_own_tools(options, launch.own, skills)

    async def _session(self, options: ClaudeAgentOptions, own: OwnTools | None, caller: Caller) -> Session:
        if own is None:
            return await self._open(options)
        return await self._open(options, policy=caller.policy(own), mcp_servers=own.mcp_servers or None)

    async def _open(
        self,
        options: ClaudeAgentOptions,
        *,
        policy: Policy | None = None,
        mcp_servers: Mapping[str, McpServer] | None = None,
    ) -> Session:
        session = await Session.open(options, policy=policy, mcp_servers=mcp_servers, timeouts=self._timeouts)
        self._models = session.info.get("models", [])
        return session


def _names(server: ToolServerKey | None) -> Mapping[str, str]:
    return _PLAIN_NAMES if server is not None and server.is_plain else {}
