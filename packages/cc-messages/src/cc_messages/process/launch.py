"""Options and key of the process that answers a request; sealed, opened only as far as the request needs it."""

import os
from collections import ChainMap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from claude_agent_sdk import ClaudeAgentOptions
from typing_extensions import override

from cc_session import McpServer, Timeouts, sealed_options
from cc_session.internals import Launch, Login, api_origin, login_of

from ..api.request import PLAIN_MODEL, MessagesRequest
from ..api.token_count import APIAccess
from ..context.tools import ToolServerKey
from .abilities import Abilities
from .api_log import LOG_ARGUMENTS, LOG_ENV
from .plan import LIMIT_ENV, NO_COMMANDS, RequestPlan

__all__ = ["LaunchBuilder", "RequestLaunch", "betas_env", "logged"]

_BETAS = "ANTHROPIC_BETAS"

# The clouds' capabilities. With system messages among them, which the CLI would assume, it repeats a request that got a
# 400 or 422 without them; on Bedrock it adds a beta to the body. Measured on CLI 2.1.139 to 2.1.329.
_CAPABILITIES = "effort,max_effort,xhigh_effort,thinking,adaptive_thinking,interleaved_thinking"
_CLOUD_ENV = {
    "ANTHROPIC_CUSTOM_MODEL_OPTION": PLAIN_MODEL,
    "ANTHROPIC_CUSTOM_MODEL_OPTION_SUPPORTED_CAPABILITIES": _CAPABILITIES,
    "DISABLE_INTERLEAVED_THINKING": "1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLaunch(Launch):
    """The launch of a process that answers Messages API requests."""

    plan: Callable[[], RequestPlan] = field(compare=False)
    """Makes the process's plan."""
    tool_server: ToolServerKey | None = None
    """The caller's tools that the CLI calls; None if there are none."""
    loop_key: object = None
    """The key's part for the CLI's own loop."""

    @override
    def _companions(self) -> object:
        return self.loop_key


class LaunchBuilder:
    """Builds launches from the transport's arguments; does not know the transport itself.

    Args:
        env: Environment variables for the processes, on top of this one's.
        cwd: Working folder of Claude Code's own tools; an empty private one if None. Processes without them have a
            private one in any case: in a repository the CLI would start git, with the request in its environment.
        cli_path: The CLI to run; the one in claude-agent-sdk's wheel if None.
        timeouts: The time limits of all waits.
    """

    def __init__(
        self, env: Mapping[str, str], cwd: str | Path | None, cli_path: str | Path | None, timeouts: Timeouts
    ) -> None:
        self._env, self._cli_path, self._timeouts = dict(env), cli_path, timeouts
        self.cwd = cwd
        """Working folder of Claude Code's own tools."""
        self.abilities: Abilities = Abilities()
        """The CLI's abilities."""

    @property
    def env(self) -> Mapping[str, str]:
        """The processes' environment, as far as the caller sets it."""
        return ChainMap(self._env, os.environ)

    @property
    def login(self) -> Login:
        """The login of a process started now."""
        return login_of(self._env)

    @property
    def api_origin(self) -> str:
        """The API's scheme, host and port."""
        return api_origin(self._env)

    @property
    def api(self) -> APIAccess:
        """The processes' access to the API."""
        return APIAccess.of(self._env)

    def whole(self, request: MessagesRequest) -> RequestLaunch:
        """Return the launch for a request whose body goes to the API as a whole."""
        return self._whole(request.system, request.process_model, betas_env(request))

    def plain(self) -> RequestLaunch:
        """Return the launch for any request without betas, as far as the login allows."""
        return self._whole((), PLAIN_MODEL, {})

    def _whole(self, system: tuple[str, ...], model: str, env: Mapping[str, str]) -> RequestLaunch:
        cloud = _CLOUD_ENV if self.login in (Login.BEDROCK, Login.FOUNDRY, Login.VERTEX) else {}
        options = logged(self.sealed(system, model, {**env, **LIMIT_ENV, **cloud}))
        if self.abilities.can_rewind:  # without it, a command clears the conversation
            options = replace(options, extra_args={**options.extra_args, **NO_COMMANDS})
        return self.launch(options, partial(RequestPlan, self.abilities))

    def sealed(self, system: tuple[str, ...], model: str, env: Mapping[str, str]) -> ClaudeAgentOptions:
        """Return options without tools, settings and files, with `env` under the caller's variables."""
        options = sealed_options(system_prompt="\n\n".join(system), model=model, env=self._env, cli_path=self._cli_path)
        # The caller's own variables take precedence, except over a request's betas.
        betas = {name: value for name, value in env.items() if name == _BETAS}
        return replace(options, env={**options.env, **env, **self._env, **betas})

    def launch(
        self,
        options: ClaudeAgentOptions,
        plan: Callable[[], RequestPlan],
        *,
        tool_server: ToolServerKey | None = None,
        mcp_servers: Mapping[str, McpServer] | None = None,
        loop_key: object = None,
    ) -> RequestLaunch:
        """Return the launch with these options and this plan."""
        return RequestLaunch(
            options=options,
            policy=None,
            hooks=(),
            mcp_servers=mcp_servers,
            require_mcp=True,
            timeouts=self._timeouts,
            plan=plan,
            tool_server=tool_server,
            loop_key=loop_key,
        )


def logged(options: ClaudeAgentOptions) -> ClaudeAgentOptions:
    """Return the options, with a log of API calls."""
    return replace(options, env={**LOG_ENV, **options.env}, extra_args={**options.extra_args, **LOG_ARGUMENTS})


def betas_env(request: MessagesRequest) -> Mapping[str, str]:
    """Return the variable for a request's betas, sorted, so that equal sets are equal."""
    names = {beta.strip() for beta in request.betas.split(",")} - {""}
    return {_BETAS: ",".join(sorted(names))} if names else {}
