"""MCP servers in a request (`MCPServerTool`), to which Claude Code itself connects.

If the API connected to them, answers would have blocks that Claude Code 2.1.329 cannot read. Claude Code is an MCP
client itself, so it gets the servers; the calls appear as the same native parts.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.native_tools import MCPServerTool

from cc_messages import ClaudeCodeTools
from cc_session import HTTPServer, Policy, Rule
from cc_session.internals import owned

# Requests with equal servers share processes, so few combinations are in use at a time.
_CACHE_SIZE = 32


def with_mcp_servers(
    parameters: ModelRequestParameters, claude_code_tools: ClaudeCodeTools | None
) -> ClaudeCodeTools | None:
    """Return Claude Code tools for a request: the enabled tools, and the MCP servers among the native tools.

    Equal servers give the same tools, so that requests share processes.
    """
    servers = [tool for tool in parameters.native_tools if isinstance(tool, MCPServerTool)]
    return _with_servers(claude_code_tools, tuple(map(_server_key, servers))) if servers else claude_code_tools


def without_mcp_servers(parameters: ModelRequestParameters) -> ModelRequestParameters:
    """Return the parameters without the MCP servers, so that the API does not get them."""
    other_tools = [tool for tool in parameters.native_tools if not isinstance(tool, MCPServerTool)]
    return (
        parameters
        if len(other_tools) == len(parameters.native_tools)
        else replace(parameters, native_tools=other_tools)
    )


_Server = tuple[str, str, tuple[tuple[str, str], ...], tuple[str, ...] | None]


def _server_key(tool: MCPServerTool) -> _Server:
    """Return a server name, address, headers and allowed tools as a comparable value."""
    headers = {**(tool.headers or {})}
    if tool.authorization_token:
        headers["Authorization"] = f"Bearer {tool.authorization_token}"
    allowed = None if tool.allowed_tools is None else tuple(tool.allowed_tools)
    return owned((tool.id, tool.url, tuple(sorted(headers.items())), allowed))


@lru_cache(maxsize=_CACHE_SIZE)
def _with_servers(claude_code_tools: ClaudeCodeTools | None, servers: Sequence[_Server]) -> ClaudeCodeTools:
    claude_code_tools = claude_code_tools or ClaudeCodeTools(tools=())
    new_servers = {name: HTTPServer(url, headers=dict(headers)) for name, url, headers, _ in servers}
    rules = [_deny_except(name, allowed) for name, _, _, allowed in servers if allowed is not None]
    policy = (claude_code_tools.policy or Policy()).with_rules(*rules) if rules else claude_code_tools.policy
    return replace(claude_code_tools, mcp_servers={**claude_code_tools.mcp_servers, **new_servers}, policy=policy)


def _deny_except(server: str, allowed: Sequence[str]) -> Rule:
    names = "|".join(map(re.escape, allowed))
    return Rule(re.compile(rf"mcp__{re.escape(server)}__(?!(?:{names})$).*", re.DOTALL), "deny")
