"""Names of MCP servers and of their tools, as the CLI makes them."""

import re
from collections.abc import Mapping
from typing import Final

PLAIN_NAMES_ENV: Final[Mapping[str, str]] = {"CLAUDE_AGENT_SDK_MCP_NO_PREFIX": "1"}
"""Environment of a CLI that shows the model MCP tools under their plain names. Rules and hooks see the full names."""

_PREFIX = "mcp__"
# `__` separates server and tool, so a server name neither contains it nor ends with half of it.
_SERVER = re.compile(r"(?!.*__)[A-Za-z0-9][A-Za-z0-9_-]{0,63}(?<!_)")
_REPLACED = re.compile(r"[^A-Za-z0-9_-]")


def check_server_name(name: str) -> None:
    """Raise `ValueError` if the CLI would change a server name in its tool names, or tool names would be ambiguous."""
    if not _SERVER.fullmatch(name):
        raise ValueError(
            f"{name!r} cannot be the name of an MCP server: it has up to 64 letters, digits, '-' and single '_', "
            "begins with a letter or digit, and does not end with '_'"
        )


def mcp_name(server: str, tool: str) -> str:
    """Return the CLI name for a tool. The CLI replaces all characters but letters, digits, `_` and `-`."""
    return f"{_PREFIX}{_REPLACED.sub('_', server)}__{_REPLACED.sub('_', tool)}"


def server_rule(server: str) -> str:
    """Return the CLI permission rule for all tools of a server."""
    return _PREFIX + server


def is_mcp_name(name: str) -> bool:
    """Return true if a name has the form of an MCP tool name."""
    return name.startswith(_PREFIX)


def split_mcp_name(name: str) -> tuple[str, str] | None:
    """Return server and tool of an MCP tool name; None for any other name."""
    server, separator, tool = name.removeprefix(_PREFIX).partition("__")
    return (server, tool) if is_mcp_name(name) and separator else None
