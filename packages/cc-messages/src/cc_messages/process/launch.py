"""The launch of the process for a request: sealed, opened only as far as the request's own loop needs it.

It has the options, and all that the requests of a process must have in common.
"""

import os
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from claude_agent_sdk import ClaudeAgentOptions
from typing_extensions import override

from cc_session import Timeouts, sealed_options
from cc_session.internals import Launch, Login, login_of

from ..api.request import PLAIN_MODEL, MessagesRequest
from ..api.token_count import APIAccess
from ..loop.claude_code_tools import ClaudeCodeTools, with_claude_code_tools
from ..loop.cli_tools import ToolServerKey
from ..loop.request import LoopRequest
from .abilities import Abilities
from .api_log import LOG_ARGUMENTS, LOG_ENV
from .single_call import LIMIT_ENV, Allowance

__all__ = ["NO_COMMANDS", "LaunchBuilder", "RequestLaunch"]

NO_COMMANDS: Mapping[str, str | None] = {"disable-slash-commands": None}
"""The command line of a process without commands: the CLI would search them after each parameter change."""

# A tool's side effects cannot be repeated, so the CLI retries a failed API call of its loop: as often as the API's own
# clients do.
_LOOP_ENV = {"CLAUDE_CODE_MAX_RETRIES": "2"}

# The model gets the tools under the request's names.
_PLAIN_NAMES = {"CLAUDE_AGENT_SDK_MCP_NO_PREFIX": "1"}

_BETAS = "ANTHROPIC_BETAS"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLaunch(Launch):
    """The launch of a process that answers requests of the Messages API."""

    tool_server: ToolServerKey | None = None
    """The tools of the requests that the CLI knows; None if it knows none."""
    claude_code_tools: ClaudeCodeTools | None = None
    """The CLI's own tools; None if it has none."""
    allowance: Allowance = field(default_factory=Allowance, compare=False)
    """The length of the prompt, in the processes' count."""
    abilities: Abilities = field(default_factory=Abilities, compare=False)
    """The abilities of the CLI."""

    @override
    def _companions(self) -> object:
        server = self.tool_server
        if server is not None and not server.is_plain:  # plain ones of an earlier request stay in the CLI's list
            server = replace(server, tools="")
        return server, self.claude_code_tools and self.claude_code_tools.key

    @property
    def has_loop(self) -> bool:
        """True if the CLI calls tools and asks the API again by itself; if not, it makes one API call per request."""
        return self.tool_server is not None or self.claude_code_tools is not None


class LaunchBuilder:
    """Builds the launches of processes from the transport's arguments; does not know the transport itself.

    Args:
        env: Environment variables for the processes, on top of this one's.
        cwd: Working folder of Claude Code's own tools; an empty private one if None. Processes without them have a
            private one in any case: in a repository the CLI would start git, with the request in its environment.
        cli_path: The CLI to run; the one in the wheel of claude-agent-sdk if None.
        timeouts: The time limits of all waits.
    """

    def __init__(
        self, env: Mapping[str, str], cwd: str | Path | None, cli_path: str | Path | None, timeouts: Timeouts
    ) -> None:
        self._env, self._cwd, self._cli_path, self._timeouts = dict(env), cwd, cli_path, timeouts
        self.abilities = Abilities()
        """The abilities of the CLI."""

    @property
    def env(self) -> Mapping[str, str]:
        """The environment of the processes, as far as the caller sets it."""
        return ChainMap(self._env, os.environ)

    @property
    def login(self) -> Login:
        """The login of a process started now."""
        return login_of(self._env)

    @property
    def api(self) -> APIAccess:
        """The API access of the processes."""
        return APIAccess.of(self._env)

    def launch(self, request: MessagesRequest) -> RequestLaunch:
        """Return the launch of a process for `request`."""
        if request.loop is not None:
            return self._loop(request, request.loop)
        return self._whole(request.system, request.process_model, _betas(request))

    def plain(self) -> RequestLaunch:
        """Return the launch of a process for any request without betas of its own, as far as the login allows."""
        return self._whole((), PLAIN_MODEL, {})

    def _whole(self, system: tuple[str, ...], model: str, env: Mapping[str, str]) -> RequestLaunch:
        options = self._sealed(system, model, {**env, **LIMIT_ENV})
        if self.abilities.can_rewind:  # otherwise a command clears the conversation
            options = replace(options, extra_args={**options.extra_args, **NO_COMMANDS})
        return self._launch(options, None)

    def _loop(self, request: MessagesRequest, loop: LoopRequest) -> RequestLaunch:
        plain = _PLAIN_NAMES if loop.tool_server is not None and loop.tool_server.is_plain else {}
        options = self._sealed(request.system, request.process_model, {**_betas(request), **_LOOP_ENV, **plain})
        if loop.claude_code_tools is not None:
            options = with_claude_code_tools(replace(options, cwd=self._cwd), loop.claude_code_tools)
        return self._launch(options, loop)

    def _sealed(self, system: tuple[str, ...], model: str, env: Mapping[str, str]) -> ClaudeAgentOptions:
        options = sealed_options(system_prompt="\n\n".join(system), model=model, env=self._env, cli_path=self._cli_path)
        # The caller's own variables take precedence, except the betas of a request.
        betas = {name: value for name, value in env.items() if name == _BETAS}
        return replace(options, env={**options.env, **env, **self._env, **betas})

    def _launch(self, options: ClaudeAgentOptions, loop: LoopRequest | None) -> RequestLaunch:
        claude_code_tools = None if loop is None else loop.claude_code_tools
        if claude_code_tools is None:  # otherwise the programs that its tools start would have these, too
            arguments = {**options.extra_args, **LOG_ARGUMENTS}
            options = replace(options, env={**LOG_ENV, **options.env}, extra_args=arguments)
        return RequestLaunch(
            options=options,
            policy=None,
            hooks=(),
            mcp_servers=None
            if claude_code_tools is None or not claude_code_tools.mcp_servers
            else dict(claude_code_tools.mcp_servers),
            require_mcp=True,
            timeouts=self._timeouts,
            tool_server=None if loop is None else loop.tool_server,
            claude_code_tools=claude_code_tools,
            abilities=self.abilities,
            allowance=Allowance.of(str(self._cli_path), has_message=not self.login.is_in_environment),
        )


def _betas(request: MessagesRequest) -> Mapping[str, str]:
    """Return the variable for the betas of a request, in one order, so that equal ones are equal."""
    names = {beta.strip() for beta in request.betas.split(",")} - {""}
    return {_BETAS: ",".join(sorted(names))} if names else {}
