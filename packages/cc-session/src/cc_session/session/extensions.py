"""Extensions that a session adds to the SDK options: a policy, hooks and MCP servers.

They are checked and put into the options before the process starts; other settings are sent when it runs.
"""

import asyncio
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast, get_args

from claude_agent_sdk import (
    CanUseTool,
    ClaudeAgentOptions,
    HookMatcher,
    McpServerStatus,
    PermissionMode,
    PermissionResult,
    SandboxSettings,
    ToolPermissionContext,
)  # fmt: skip
from claude_agent_sdk.types import HookEvent

from cc_types import ControlRequestError, JsonValue

from ..errors import HooksDisabledError, McpServerFailedError
from ..hooks.calls import CallbackRunner, call_on, for_the_cli, keeping_in_memory
from ..hooks.hook import Hook
from ..identity import owned
from ..limits import Timeouts
from ..mcp.control import McpControl
from ..mcp.names import PLAIN_NAMES_ENV
from ..mcp.servers import McpServer, wire_servers
from ..mcp.tool_texts import ToolTexts
from ..policy.gate import PolicyGate, in_memory_only
from ..policy.policy import Policy
from ..policy.questions import QUESTION_TOOL, QuestionDesk, Questions
from ..policy.sandbox import check_sandbox, sandbox_settings
from ..process.link import Link
from ..process.sealed import is_sealed, with_asked_features

# This variable makes the CLI run bare, without hooks, wherever it is set: options, environment, or a settings file.
_BARE = "CLAUDE_CODE_SIMPLE"
_TRUE = frozenset({"1", "true", "yes", "on"})

# Hooks in settings files and plugins are programs that can change a call input, or permit the call, after the policy
# has decided; and older CLIs call no hook for commands in a skill or a slash command.
_POLICY_SETTINGS: dict[str, JsonValue] = {"disableAllHooks": True, "disableSkillShellExecution": True}

# Tools that the CLI offers to the model as soon as it can ask for permissions.
_TOOLS_THAT_ASK = (QUESTION_TOOL, "EnterPlanMode", "ExitPlanMode")


def check_mode(mode: str) -> None:
    """Raise if there is no such permission mode."""
    if mode not in (modes := get_args(PermissionMode)):
        raise ValueError(f"there is no permission mode {mode!r}; there are {', '.join(modes)}")


def _check_together(options: ClaudeAgentOptions, policy: Policy | None, questions: Questions | None) -> None:
    """Raise if the options conflict with hooks, with this policy, or with questions."""
    is_bare = "bare" in options.extra_args and not is_sealed(options)
    if is_bare or options.env.get(_BARE, "").strip().lower() in _TRUE:
        raise ValueError("in bare mode Claude Code runs no hooks, and so no policy: leave out `bare`, or the hooks")
    if (policy or questions) is not None and options.permission_prompt_tool_name is not None:
        raise ValueError(
            "a policy, or Questions, and permission_prompt_tool_name answer the same requests: leave out either"
        )
    if policy is not None and policy.ask is not None and options.can_use_tool is not None:
        raise ValueError("the policy's `ask` and can_use_tool answer the same requests: leave out either")


async def _turn_hooks_on(link: Link, *, has_policy: bool) -> None:
    """Ensure that hooks run; with a policy, that no hooks from settings files run."""
    settings: dict[str, JsonValue] = {"env": {_BARE: "0"}, **(_POLICY_SETTINGS if has_policy else {})}
    try:
        await link.request("apply_flag_settings", {"settings": settings})
        listing = await link.request("get_hooks_listing", {})
    except ControlRequestError as error:
        raise HooksDisabledError(f"the CLI cannot say whether it runs them: {error.message}") from error
    policy = listing.get("policy")
    if not isinstance(policy, dict):
        raise HooksDisabledError("the CLI does not say whether it runs them")
    if "bareMode" in listing:
        raise HooksDisabledError("it runs in bare mode")
    if policy.get("disabledByPolicy") or policy.get("managedOnly"):
        raise HooksDisabledError("the managed settings of this machine forbid them")
    if has_policy and not policy.get("allDisabled"):
        raise HooksDisabledError("hooks in settings files, which could get round the policy, cannot be turned off")


def _in_memory(callback: CanUseTool, callback_runner: CallbackRunner) -> CanUseTool:
    async def can_use_tool(tool: str, input: dict[str, Any], context: ToolPermissionContext) -> PermissionResult:
        callback_runner.check(None)
        return in_memory_only(await call_on(None, callback, tool, input, context))

    return can_use_tool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SessionSetup:
    """Arguments of `Session.open()`."""

    options: ClaudeAgentOptions
    policy: Policy | None = None
    hooks: Sequence[Hook[Any]] = ()
    mcp_servers: Mapping[str, McpServer] | None = None
    require_mcp: bool = True
    questions: Questions | None = None
    timeouts: Timeouts = field(default_factory=Timeouts)
    describes_tools: bool = True
    """False if requests describe MCP tools, so that no text that the CLI keeps reaches the API."""

    def __post_init__(self) -> None:
        # Copies, so that the caller's later changes have no effect.
        object.__setattr__(self, "options", with_asked_features(owned(self.options)))
        object.__setattr__(self, "hooks", tuple(self.hooks))
        object.__setattr__(self, "mcp_servers", owned(self.mcp_servers))


class Extensions:
    """A session's policy, hooks, questions and MCP servers. Created on the caller's loop.

    Raises:
        ValueError: They conflict with the options, or an MCP server name or value is invalid.
        TypeError: An object is not a hook or not an MCP server.
    """

    def __init__(self, setup: SessionSetup) -> None:
        options, policy = setup.options, setup.policy
        self._setup, self.timeouts = setup, setup.timeouts
        self._switching = asyncio.Lock()
        if options.permission_mode is not None:
            check_mode(options.permission_mode)
        if not_hooks := [hook for hook in setup.hooks if type(hook) is not Hook]:
            raise TypeError(f"a hook is made by hook() or command_hook(), not {not_hooks[0]!r}")
        self.callback_runner = CallbackRunner(asyncio.get_running_loop())
        self.desk = QuestionDesk(setup.questions, self.callback_runner, self.timeouts.question)
        self._initial_servers = options.mcp_servers if isinstance(options.mcp_servers, dict) else {}
        if setup.mcp_servers is not None:
            wire_servers(setup.mcp_servers, taken=self._initial_servers.keys())
        # A caller adds a server to a sealed process only for its tools, so these are allowed.
        self._breaks_seal = setup.mcp_servers is not None and is_sealed(options)
        gate = None
        if policy is not None or self.desk.can_answer:
            gate = PolicyGate(policy or Policy(), options.can_use_tool, self.callback_runner, self.timeouts, self.desk)
        if policy is not None and policy.sandbox is not False:
            check_sandbox({**os.environ, **options.env}.get("PATH", os.defpath))
            asked = SandboxSettings() if policy.sandbox is True else policy.sandbox
            options = replace(options, sandbox=sandbox_settings(asked, options.cwd))
        self._has_hooks = bool(gate or setup.hooks or options.hooks)
        if self._has_hooks:
            _check_together(options, policy, setup.questions)
            args = {name: value for name, value in options.extra_args.items() if name != "bare"}
            options = replace(options, extra_args=args)
        options = self._with_callbacks(options, gate)
        if self._breaks_seal and options.max_turns == 1:
            # The CLI loop continues after a tool, with a second API call.
            options = replace(options, max_turns=None)
        # Time limit of the CLI for connecting a server, in milliseconds.
        patience = {"MCP_TIMEOUT": str(math.ceil(self.timeouts.mcp * 1000))}
        self.is_resumed = bool(options.resume or options.continue_conversation)
        """True if the conversation was begun in an earlier session."""
        self.max_cost_usd = options.max_budget_usd
        """Maximum cost of a turn in US dollars; None for no limit."""
        # The CLI must not watch this budget: it would block every later turn once the budget is spent.
        self.options = replace(options, env={**patience, **options.env}, max_budget_usd=None)
        """Options for the start of the process."""
        self.client_options = self.options
        if gate is not None:
            # So that the client does not warn that the CLI bypasses the permission callback, which it does not: a hook
            # sends calls there. The client has no other use for these options.
            skills = None if options.skills == "all" else options.skills
            self.client_options = replace(self.options, permission_mode=None, allowed_tools=[], skills=skills)

    def _with_callbacks(self, options: ClaudeAgentOptions, gate: PolicyGate | None) -> ClaudeAgentOptions:
        """Return options with hooks, a policy and questions in them."""
        runner = self.callback_runner
        hooks: dict[str, list[HookMatcher]] = {event: [*matchers] for event, matchers in (options.hooks or {}).items()}
        for hook in self._setup.hooks:
            hooks.setdefault(hook.event, []).append(for_the_cli(hook, runner))
        for event, matchers in hooks.items():
            for index, matcher in enumerate(matchers):
                callbacks = [keeping_in_memory(event, callback, runner) for callback in matcher.hooks]
                if gate is not None:
                    callbacks = [gate.guarded(event, callback) for callback in callbacks]
                matchers[index] = replace(matcher, hooks=callbacks)
        if gate is not None:
            hooks.setdefault("PreToolUse", []).insert(0, gate.hook())
            options = replace(options, can_use_tool=gate.can_use_tool)
            if not gate.can_ask:
                tools = options.tools if isinstance(options.tools, list) else []
                wanted = [*tools, *([QUESTION_TOOL] * self.desk.can_answer)]
                unwanted = [tool for tool in _TOOLS_THAT_ASK if tool not in wanted]
                options = replace(options, disallowed_tools=[*options.disallowed_tools, *unwanted])
        elif options.can_use_tool is not None:
            options = replace(options, can_use_tool=_in_memory(options.can_use_tool, runner))
        if hooks:
            hooks.setdefault("UserPromptSubmit", []).insert(0, runner.note_turns())
        return replace(options, hooks=cast("dict[HookEvent, list[HookMatcher]]", hooks) or None)

    async def serve(
        self,
        servers: Mapping[str, McpServer],
        *,
        require: bool | None = None,
        loop: asyncio.AbstractEventLoop | None,
        switched_off: dict[str, McpServer] | None = None,
    ) -> list[McpServerStatus]:
        """Replace the MCP servers, also those in `switched_off`, and wait for them; in-process servers run on `loop`.

        With `require`, a server that is not ready is an error; None takes the value for the first servers.
        """
        require = self._setup.require_mcp if require is None else require
        servers = owned(servers)
        checked = wire_servers(servers, taken=self._initial_servers.keys())
        if switched_off is not None:
            switched_off.clear()
        with self.settings.changing("mcp_servers", servers or None):
            return await self.mcp.replace(checked, require=require, loop=loop)

    async def switch(
        self, name: str, *, is_on: bool, loop: asyncio.AbstractEventLoop, switched_off: dict[str, McpServer]
    ) -> None:
        """Move a server to `switched_off`, or from there to the servers in use.

        Claude Code keeps its own switch in the user's configuration, for all later sessions in the same folder.
        """
        async with self._switching:
            on = cast("Mapping[str, McpServer] | None", self.settings["mcp_servers"]) or {}
            servers = {**switched_off, **on}
            if name not in servers:
                await self.mcp.wait([name], seconds=0, require=False)  # raises if there is none
                raise McpServerFailedError({name: "only a server of open() or set_mcp_servers() can be switched"})
            names = {*on, name} if is_on else {*on} - {name}
            await self.serve({each: servers[each] for each in servers if each in names}, require=False, loop=loop)
            switched_off.update((each, servers[each]) for each in servers if each not in names)
            if is_on:
                switched_off.pop(name, None)
                await self.mcp.wait([name], seconds=0, require=True)

    def has_other_texts(self, servers: Mapping[str, McpServer]) -> bool:
        """Return true if the CLI may keep other texts of these MCP servers' tools."""
        return self.mcp.has_other_texts(wire_servers(servers, taken=frozenset()))

    async def unpack(self, link: Link) -> None:
        """Send the running CLI the settings that are not options."""
        if link.process is not None:
            self.callback_runner.mark = link.process.mark
        link.answer_questions(self.desk.control)
        has_policy = self._setup.policy is not None
        allows_tools = self._breaks_seal and not has_policy
        in_process = [name for name, server in self._initial_servers.items() if server.get("type") == "sdk"]
        texts = ToolTexts(has_plain_names=PLAIN_NAMES_ENV.items() <= {**os.environ, **self.options.env}.items())
        kept = texts if self._setup.describes_tools else None
        self.mcp = McpControl(link, initial=in_process, allows_tools=allows_tools, texts=kept)
        if self._has_hooks:
            await _turn_hooks_on(link, has_policy=has_policy)
        self.settings = link.settings
        if self._setup.mcp_servers:
            await self.serve(self._setup.mcp_servers, loop=self.callback_runner.loop)
        # Initial state, not a change by a caller.
        self.settings.begin()
        link.observer.side_effects.clear()
