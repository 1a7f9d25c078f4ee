"""Options and key of a process in which Claude Code runs the loop."""

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from claude_agent_sdk import ClaudeAgentOptions

from cc_session.internals import PLAIN_NAMES_ENV, is_mcp_name, server_rule

from ..context.tools import ClaudeCodeTools
from ..process.launch import LaunchBuilder, RequestLaunch, betas_env, logged
from .plan import LoopPlan
from .request import LoopRequest

__all__ = ["loop_launch"]

# Repeating the request would repeat tool calls, so the CLI retries its own API calls, as often as the API's clients do.
_LOOP_ENV = {"CLAUDE_CODE_MAX_RETRIES": "2"}

# The tools that a CLI has with `--bare`. It silently omits all others there. Measured on CLI 2.1.329.
_IN_BARE_MODE = frozenset({"Bash", "Edit", "Read"})


def loop_launch(request: LoopRequest, builder: LaunchBuilder) -> RequestLaunch:
    """Return the launch for `request`."""
    server, own_tools = request.tool_server, request.context.claude_code_tools
    plain: Mapping[str, str] = PLAIN_NAMES_ENV if server is not None and server.is_plain else {}
    options = builder.sealed(request.system, request.process_model, {**betas_env(request), **_LOOP_ENV, **plain})
    if own_tools is None:
        options = logged(options)
    else:  # not logged: programs that its tools start would have the variables, too
        options = _opened(replace(options, cwd=builder.cwd), own_tools)
    # The caller's tools under their own names stay in the CLI's list, so they belong to the key.
    key_server = server if server is None or server.is_plain else replace(server, tools="")
    return builder.launch(
        options,
        partial(LoopPlan, server, own_tools, builder.abilities),
        tool_server=server,
        mcp_servers=dict(own_tools.mcp_servers) if own_tools is not None and own_tools.mcp_servers else None,
        loop_key=(key_server, own_tools and own_tools.key),
    )


def _opened(options: ClaudeAgentOptions, own_tools: ClaudeCodeTools) -> ClaudeAgentOptions:
    """Return a sealed process's options, opened as far as `own_tools` allows."""
    if not _IN_BARE_MODE.issuperset(own_tools.names):
        options = replace(options, extra_args={name: arg for name, arg in options.extra_args.items() if name != "bare"})
    folder = own_tools.cwd or options.cwd
    return replace(
        options,
        tools=[name for name in own_tools.names if not is_mcp_name(name)],
        allowed_tools=[*options.allowed_tools, *own_tools.tools, *map(server_rule, own_tools.mcp_servers)],
        max_turns=own_tools.max_turns,
        cwd=None if folder is None else os.path.abspath(folder),
        agents=dict(own_tools.agents) or None,
    )
