"""Launch and plan of a process in which Claude Code runs the loop, with the conversation in its history.

Claude Code finds skills in settings folders, and settings include the folder author's hooks, permissions, environment
variables and servers. So it gets a request's skills, by name, as a plugin: a folder with only links to them.
"""

import asyncio
import inspect
import json
import os
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import AsyncExitStack
from dataclasses import astuple, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from claude_agent_sdk import ClaudeAgentOptions, PermissionResult, ToolPermissionContext
from typing_extensions import override

from cc_session import Ask, Content, Hook, HookResult, McpServer, McpServerFailedError, Policy, Questions, Verdict
from cc_session.internals import (
    NO_RESULT_FILES_ENV,
    PLAIN_NAMES_ENV,
    Launch,
    PooledSession,
    SettingValues,
    calling_freely,
    config_folder,
    file_state,
    is_mcp_name,
    server_rule,
    variable,
)  # fmt: skip

from ..api.request import MessagesRequest
from ..api.response import Answer, invalid
from ..context import ClaudeCodeTools, ToolServerKey
from ..process.abilities import Abilities
from ..process.plan import LIMIT_VARIABLE, LaunchBuilder, RequestLaunch, logged
from .calls import Approvals, ToolServer
from .reading import LoopReading
from .request import SEARCHES, LoopRequest

# Repeating the request would repeat tool calls, so the CLI retries its own API calls, as often as the API clients do.
_LOOP_ENV = {"CLAUDE_CODE_MAX_RETRIES": "2"}

# The tools that a CLI has with `--bare`. It silently omits all others there. Measured on CLI 2.1.329.
_IN_BARE_MODE = frozenset({"Bash", "Edit", "Read"})

# The plugin name; the model may know a skill as `skills:NAME`.
_PLUGIN = "skills"

# Attachments tell the model of MCP servers' instructions, but not with `--bare`. Measured on CLI 2.1.332.
_INSTRUCTIONS_ENV = {"CLAUDE_CODE_DISABLE_ATTACHMENTS": "0"}

# Tools that leave nothing behind. Measured on CLI 2.1.257, whose `Read` refuses a file that it has read, and 2.1.332.
_STATELESS = frozenset({"AskUserQuestion", "Glob", "Grep", "WebSearch"})

_SHELLS = frozenset({"Bash", "PowerShell"})


class _Narrowed(Policy):
    """A policy that opens no more of a tool than its name with arguments does, such as `Bash(git *)`."""

    _policy: Policy
    _limited: Set[str]

    def __init__(self, policy: Policy, ask: Ask | None, own_tools: ClaudeCodeTools) -> None:
        super().__init__(policy.rules, default=policy.default, ask=ask, timeout=policy.timeout, sandbox=policy.sandbox)
        object.__setattr__(self, "_policy", policy)
        object.__setattr__(self, "_limited", {*own_tools.names} - {*own_tools.tools})

    @override
    def verdict(self, tool: str, input: Mapping[str, Any]) -> Verdict:
        verdict = self._policy.verdict(tool, input)
        is_limited = verdict.behavior == "allow" and tool in self._limited
        return replace(verdict, behavior="pass") if is_limited else verdict


class LoopPlan:
    """The CLI calls tools by itself, in a conversation that is written before the answer and removed after it.

    At first it has the caller's tools in `key`; it has its own tools only with `own_tools`.
    """

    has_history = True
    tool_server: ToolServerKey | None = None
    _session: PooledSession
    _request: LoopRequest
    _reading: LoopReading | None = None
    _server: ToolServer | None = None

    def __init__(
        self,
        key: ToolServerKey | None,
        own_tools: ClaudeCodeTools | None,
        abilities: Abilities,
        *,
        changes_body: bool = False,
    ) -> None:
        self.abilities, self._key, self._own_tools, self._changes_body = abilities, key, own_tools, changes_body
        self._subagents: set[str | None] = set()
        """Ids of the sub-agents that run."""
        self._searching: set[str | None] = set()
        """Ids of the sub-agents whose tools search, None for the agent."""
        self._changing_body = asyncio.Lock()

    async def open(self, launch: Launch, options: ClaudeAgentOptions, resources: AsyncExitStack) -> PooledSession:
        """Open a session with the tools, and without servers, which come with the first request."""
        resources.push_async_callback(self._stop)
        if self._key is not None:
            limit = options.max_turns  # the session limit of one call is not meant here
            options = replace(calling_freely(options, self._key.name), max_turns=limit)
        # The servers come with the first request.
        launch = replace(launch, mcp_servers={}, describes_tools=self._own_tools is not None)
        if (own_tools := self._own_tools) is not None:
            questions = own_tools.questions and Questions(partial(self._there, own_tools.questions.answer))
            launch = replace(launch, policy=self._policy(own_tools), questions=questions)
        if self._changes_body:
            events = {
                "SubagentStart": None,
                "SubagentStop": None,
                "PreToolUse": "|".join(SEARCHES),
                "PostToolBatch": None,
            }
            hooks = [Hook(event, self._note, matcher, runs_here=True) for event, matcher in events.items()]
            launch = replace(launch, hooks=hooks)
        start = partial(PooledSession.start, launch)
        if self._own_tools is None:
            self._session = await self.abilities.open(start, options)
        else:  # programs that its tools start would have the options that save memory, too
            self._session = await start(_with_skills(options, self._own_tools, resources))
        resources.push_async_callback(self._session.close)
        return self._session

    async def prepare(
        self, launch: Launch, settings: SettingValues, request: MessagesRequest, *, is_first: bool
    ) -> None:
        """Apply the settings, the caller's tools among them, and write all messages but the last."""
        assert isinstance(request, LoopRequest)  # noqa: S101  # the launch key has its tools
        self._request = request
        self._subagents.clear()
        self._searching.clear()
        key, earlier, server = request.tool_server, self._server, None
        self._server = self.tool_server = None
        # An earlier turn may have lowered it.
        settings = {**settings, variable(LIMIT_VARIABLE): launch.options.env.get(LIMIT_VARIABLE)}
        try:
            if key is not None:
                server = earlier if earlier is not None and earlier.key == key else ToolServer(key)
                other_servers = cast("Mapping[str, McpServer]", settings.get("mcp_servers") or {})
                settings = {**settings, "mcp_servers": {**other_servers, key.name: await server.start()}}
            if not await self._session.apply(settings):
                await self._session.ping()
            elif key is not None and key.transport == "stdio":
                await self._check_tools(key, launch.timeouts.mcp)
            self._server, self.tool_server = server, key
        finally:
            for unused in {earlier, server} - {self._server}:
                if unused is not None:
                    await unused.stop()
        for message in request.messages[:-1]:
            if message.role == "user":
                await self._session.add_user(message.blocks())
            else:
                await self._session.add_assistant(message.blocks(), model=request.process_model)

    @property
    def is_spent(self) -> bool:
        """True if the tools that were used, or a lost server, may show in the next request."""
        allowed_tools = set[str]() if self._reading is None else self._reading.allowed_tools
        has_used_own_tools = not self._session.side_effects.called_tools.isdisjoint(allowed_tools - _STATELESS)
        return has_used_own_tools or (self._server is not None and self._server.is_gone)

    def prompt(self) -> Content:
        """Return the last message."""
        return self._request.messages[-1].blocks()

    def reading(self, answer: Answer) -> LoopReading:
        """Return the reader for a turn, whose calls go to the caller's tools."""
        approvals, own_tools = None, self._own_tools
        if own_tools is not None and own_tools.defers and own_tools.policy is not None:
            approvals = Approvals(own_tools.policy, self._request.messages)
        self._reading = LoopReading(answer, self._request, approvals, self._session, self._server)
        if self._server is not None:
            self._server.bind(self._reading.calls, self._reading.call)
        return self._reading

    async def forget(self, *, was_blocked: bool = False) -> None:
        """Empty the conversation, and forget the request unless the CLI has not sent it."""
        self._reading = None
        if not was_blocked:
            del self._request
        if self._server is not None:
            self._server.unbind()
        await self._session.reset()

    async def _note(self, event: Mapping[str, Any]) -> HookResult:
        """Change the extra body for other API calls than the agent's. The CLI waits for this before it makes them."""
        if self._reading is not None:
            agent = event.get("agent_id")
            match event["hook_event_name"]:
                case "SubagentStart":
                    self._subagents.add(agent)
                case "SubagentStop":
                    self._subagents.discard(agent)
                case "PreToolUse":
                    self._searching.add(agent)
                case _:  # all calls of this agent have ended, also those that could not begin
                    self._searching.discard(agent)
                    if agent is None:
                        self._subagents.clear()
            request = self._request
            async with self._changing_body:
                body = request.subagent_body if self._subagents else request.extra_body
                body = request.search_body if self._searching else body
                await self._session.apply({variable("CLAUDE_CODE_EXTRA_BODY"): body})
        return HookResult.no_opinion()

    async def _stop(self) -> None:
        self._reading = None
        if self._server is not None:
            await self._server.stop()

    def _policy(self, own_tools: ClaudeCodeTools) -> Policy | None:
        """Return the tools' policy, which asks in the current caller's event loop, or by `Approvals`."""
        policy = own_tools.policy
        if policy is None:
            return None
        if policy.ask is None and not own_tools.defers:
            return _Narrowed(policy, None, own_tools)

        async def answer(tool: str, arguments: dict[str, Any], context: ToolPermissionContext) -> PermissionResult:
            reading = self._reading
            if reading is None or not await reading.calls.has(context.tool_use_id):
                raise RuntimeError("the request that the call belongs to has ended")
            arguments = reading.calls.exact(context.tool_use_id, arguments)
            if reading.approvals is not None:
                return await reading.approvals.ask(tool, arguments, context)
            assert policy.ask is not None  # noqa: S101  # a policy without it asks by `approvals`
            return await self._there(policy.ask, tool, arguments, context)

        return _Narrowed(policy, answer, own_tools)

    async def _there(self, function: Callable[..., Any], *arguments: object) -> Any:
        """Call a function in the current caller's event loop."""

        async def call() -> Any:
            answer: Any = function(*arguments)
            return await answer if inspect.isawaitable(answer) else answer

        if self._reading is None:
            raise RuntimeError("the request has ended")
        return await self._reading.context.there(call())

    async def _check_tools(self, key: ToolServerKey, seconds: float) -> None:
        """Raise McpServerFailedError if the CLI did not get all tools.

        If the bridge dies during the connection, the CLI keeps the tools received so far, and would answer calls to the
        others itself: with "no such tool".
        """
        [status] = await self._session.wait_mcp([key.name], timeout=seconds)
        if missing_names := key.names() - {tool["name"] for tool in status.get("tools", [])}:
            reason = f"the bridge ended before Claude Code had listed {', '.join(sorted(missing_names))}"
            raise McpServerFailedError({key.name: reason})


def loop_launch(request: LoopRequest, builder: LaunchBuilder) -> RequestLaunch:
    """Return the launch for `request`."""
    server, own_tools = request.tool_server, request.context.claude_code_tools
    names_env: Mapping[str, str] = PLAIN_NAMES_ENV if server is not None and server.is_plain else {}
    options = builder.sealed(request, {**_LOOP_ENV, **names_env})
    if own_tools is None:
        options = logged(options)
    else:  # not logged: programs that its tools start would have the variables, too
        options = _opened(replace(options, cwd=builder.cwd), own_tools)
    options = replace(options, max_turns=request.context.max_turns)
    # Beside its own tools the CLI describes the caller's, and keeps their first texts; else the request describes them.
    key_server = server if server is None or own_tools is not None else replace(server, tools="")
    skills = None
    if own_tools is not None and own_tools.skills:  # a process keeps what it has read
        folders = [place / name for name in own_tools.skills for place in _skill_places(options)]
        skills = [file_state(folder / "SKILL.md") for folder in folders]
    return replace(
        builder.launch(
            options, partial(LoopPlan, server, own_tools, builder.abilities, changes_body=request.changes_body)
        ),
        tool_server=server,
        mcp_servers=dict(own_tools.mcp_servers) if own_tools is not None and own_tools.mcp_servers else None,
        loop_key=(key_server and astuple(key_server), own_tools and own_tools.key, request.changes_body, skills),
    )


def _opened(options: ClaudeAgentOptions, own_tools: ClaudeCodeTools) -> ClaudeAgentOptions:
    """Return a sealed process's options, opened as far as `own_tools` allows."""
    is_bare = _IN_BARE_MODE.issuperset(own_tools.names)
    if not is_bare:
        options = replace(options, extra_args={name: arg for name, arg in options.extra_args.items() if name != "bare"})
    folder = own_tools.cwd or options.cwd
    # A shell's long output, which the CLI would otherwise cut without a word, goes to a file that the model can read.
    keeps_results = not own_tools.mcp_servers or not _SHELLS.isdisjoint(own_tools.names)
    env = {**options.env, **({} if keeps_results else NO_RESULT_FILES_ENV)}
    if own_tools.mcp_servers and not is_bare:
        env |= _INSTRUCTIONS_ENV
    return replace(
        options,
        env=env,
        tools=[name for name in own_tools.names if not is_mcp_name(name)],
        allowed_tools=[*options.allowed_tools, *own_tools.tools, *map(server_rule, own_tools.mcp_servers)],
        cwd=None if folder is None else os.path.abspath(folder),
        agents=dict(own_tools.agents) or None,
    )


def _with_skills(
    options: ClaudeAgentOptions, own_tools: ClaudeCodeTools, resources: AsyncExitStack
) -> ClaudeAgentOptions:
    """Return options with the skills that `own_tools` allows, linked in a folder that `resources` removes."""
    if not own_tools.skills:
        return options
    skills = {_skill(name, _skill_places(options)) for name in own_tools.skills}
    folder = Path(resources.enter_context(TemporaryDirectory(prefix="cc-skills-", ignore_cleanup_errors=True)))
    (folder / ".claude-plugin").mkdir()
    (folder / ".claude-plugin" / "plugin.json").write_text(json.dumps({"name": _PLUGIN}), encoding="utf-8")
    (folder / "skills").mkdir()
    for skill in skills:
        (folder / "skills" / skill.name).symlink_to(skill.resolve(), target_is_directory=True)
    names = [name for skill in own_tools.skills for name in (skill, f"{_PLUGIN}:{skill}")]
    return replace(options, plugins=[{"type": "local", "path": str(folder)}], skills=names)


def _skill_places(options: ClaudeAgentOptions) -> list[Path]:
    """Return the folders with skills; the first that has a skill wins."""
    config = config_folder(options.env)
    settings = [config] if options.cwd is None else [Path(options.cwd) / ".claude", config]
    return [folder / "skills" for folder in settings]


def _skill(name: str, places: Sequence[Path]) -> Path:
    if name in ("", ".", "..") or "/" in name or "\\" in name:
        raise invalid(f"{name!r} cannot be a skill name")
    for place in places:
        if (place / name / "SKILL.md").is_file():
            return place / name
    raise invalid(f"There is no skill {name!r} in {' or '.join(map(str, places))}")
